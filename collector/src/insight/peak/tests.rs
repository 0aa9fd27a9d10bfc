//! Peaks of small training programs.

use super::*;
use crate::model::testing::{
    GIB, MIB, Step, Trace, alloc, backward_begin, backward_end, block, block_free, event,
    finalising, mark, optimizer_step, torch_segment,
};

const TORCH: &str = "/usr/lib/python3/site-packages/torch";

fn report(trace: &Trace) -> PeakRow {
    let mut session = Session::default();
    session.processes.push(trace.process());
    let mut report = peak(&session);
    assert_eq!(report.processes.len(), 1);
    report.processes.remove(0)
}

/// A block that a module's forward makes, which the program calls at train.py:20.
fn forward(address: u64, bytes: u64) -> Step {
    block(address, bytes)
        .native("libtorch_cuda.so", "at::_ops::relu::call", "", 0)
        .at(&format!("{TORCH}/nn/modules/activation.py:9 ReLU.forward"))
        .at(&format!("{TORCH}/nn/modules/module.py:2 Module._call_impl"))
        .at("/usr/lib/python3/site-packages/torchvision/models/resnet.py:155 Block.forward")
        .at(&format!("{TORCH}/nn/modules/module.py:2 Module._call_impl"))
        .at("/home/me/train.py:20 main")
}

fn backward(address: u64, bytes: u64) -> Step {
    block(address, bytes)
        .thread(2)
        .native("libtorch_cuda.so", "at::_ops::mm::call", "", 0)
        .native(
            "libtorch_cpu.so",
            "torch::autograd::generated::MmBackward0::apply(std::vector<at::Tensor>&&)",
            "",
            0,
        )
}

fn optimizer(address: u64, bytes: u64, function: &str) -> Step {
    block(address, bytes)
        .at(&format!("{TORCH}/optim/adamw.py:3 {function}"))
        .at(&format!("{TORCH}/optim/optimizer.py:4 Optimizer.step"))
        .at("/home/me/train.py:22 main")
}

/// Weights, then `steps` training steps; the peak is in the backward pass of the last.
fn training(steps: u64) -> Trace {
    let mut trace = Trace::new();
    trace.push(torch_segment(0x10_0000_0000, GIB));
    trace.push(
        block(0x1000, 100 * MIB)
            .at(&format!(
                "{TORCH}/nn/modules/module.py:1 Module.to.<locals>.convert"
            ))
            .at(&format!("{TORCH}/nn/modules/module.py:1 Module.to"))
            .at("/home/me/train.py:10 main"),
    );
    for step in 0..steps {
        trace.push(
            block(0x2000, 10 * MIB)
                .native("libtorch_cpu.so", "at::_ops::_to_copy::call", "", 0)
                .at("/home/me/train.py:19 main"),
        );
        trace.push(forward(0x3000, 200 * MIB));
        trace.push(forward(0x4000, 40 * MIB));
        trace.push(block_free(0x4000));
        trace.push(backward_begin());
        trace.push(backward(0x5000, 100 * MIB));
        trace.push(backward(0x6000, (50 + step) * MIB).native("x.so", "f", "", 0));
        trace.push(block_free(0x6000));
        trace.push(block_free(0x3000));
        trace.push(backward_end());
        trace.push(optimizer_step());
        if step == 0 {
            trace.push(optimizer(0x7000, 150 * MIB, "AdamW._init_group"));
        }
        trace.push(optimizer(0x8000, 5 * MIB, "_multi_tensor_adamw"));
        trace.push(block_free(0x8000));
        trace.push(block_free(0x5000));
        trace.push(block_free(0x2000));
    }
    trace.push(finalising());
    trace
}

fn categories(rows: &[CategoryRow]) -> Vec<(Category, u64)> {
    rows.iter()
        .map(|row| (row.category, row.bytes / MIB))
        .collect()
}

#[test]
fn a_training_step_is_taken_apart() {
    let row = report(&training(3));
    assert_eq!(
        categories(&row.by_category),
        [
            (Category::Activation, 200),
            (Category::OptimizerState, 150),
            (Category::Parameter, 100),
            (Category::Gradient, 100),
            (Category::Temporary, 52),
            (Category::Input, 10),
        ]
    );
    assert_eq!(row.peak_bytes, 612 * MIB);
    let sum: u64 = row.by_site.iter().map(|holder| holder.bytes).sum();
    assert_eq!(sum, row.peak_bytes);
    assert_eq!(row.reserved_bytes, GIB);
    assert_eq!(
        (row.when.step, row.when.part),
        (Some(3), Some(Part::Backward))
    );
    assert_eq!(row.when.operator.as_deref(), Some("MmBackward0"));
    assert!(row.out_of_memory.is_none());
    assert_eq!((row.backward_passes, row.optimizer_steps), (3, 3));
}

#[test]
fn a_line_of_the_programs_own_is_taken_apart_by_the_layers_within() {
    let row = report(&training(2));
    let first = &row.by_site[0];
    let site = first.site.as_ref().expect("a line");
    assert_eq!(
        (site.line, first.category),
        (Some(20), Category::Activation)
    );
    assert_eq!(first.within.len(), 1);
    assert_eq!(first.within[0].site.line, Some(155));
    assert_eq!(first.within[0].bytes, 200 * MIB);
    let input = row
        .by_site
        .iter()
        .find(|holder| holder.category == Category::Input)
        .expect("the input");
    assert!(input.within.is_empty(), "it is the line itself");
    let gradient = row
        .by_site
        .iter()
        .find(|holder| holder.category == Category::Gradient)
        .expect("gradients");
    assert_eq!(gradient.site, None);
    assert_eq!(gradient.operator.as_deref(), Some("MmBackward0"));
}

#[test]
fn a_pass_that_was_never_seen_to_end_is_said_to_be_that() {
    let mut trace = Trace::new();
    trace.push(forward(0x1000, 20 * MIB));
    trace.push(backward_begin());
    trace.push(backward(0x2000, 30 * MIB));
    trace.push(event(Kind::BlockOom, [40 * MIB, 50 * MIB, 50 * MIB, 0]).at("train.py:7 main"));
    let row = report(&trace);
    assert_eq!(
        categories(&row.by_category),
        [(Category::Backward, 30), (Category::Activation, 20)]
    );
    let failed = row.out_of_memory.expect("it ran out of memory");
    assert_eq!(failed.requested_bytes, 40 * MIB);
    assert_eq!(failed.live_bytes, 50 * MIB);
    assert_eq!(failed.when.site.and_then(|site| site.line), Some(7));
    assert_eq!(
        categories(&failed.by_category),
        categories(&row.by_category)
    );
    assert_eq!(row.times_out_of_memory, 1);
}

#[test]
fn a_program_that_only_infers_has_activations_and_no_step() {
    let mut trace = Trace::new();
    trace.push(mark("load"));
    trace.push(forward(0x1000, 20 * MIB));
    let row = report(&trace);
    assert_eq!(categories(&row.by_category), [(Category::Activation, 20)]);
    assert_eq!((row.when.step, row.when.part), (None, None));
    assert_eq!(row.when.phase.as_deref(), Some("load"));
}

#[test]
fn driver_memory_is_named_after_the_library_that_took_it() {
    let mut trace = Trace::new();
    trace.push(alloc(0x1000, 4 * MIB).native("/x/libnccl.so.2", "ncclCommInitRank", "", 0));
    trace.push(alloc(0x80_0000, 2 * MIB).native("/x/libcudnn.so.9", "plan", "", 0));
    trace.push(alloc(0x100_0000, MIB).native("app", "main", "/src/app.c", 3));
    trace.push(event(Kind::AllocFailed, [9 * MIB, 2, 2, 0]).native("app", "main", "/src/app.c", 9));
    let row = report(&trace);
    assert_eq!(
        categories(&row.by_category),
        [
            (Category::Communication, 4),
            (Category::Workspace, 2),
            (Category::Other, 1)
        ]
    );
    let failed = row.out_of_memory.expect("it ran out of memory");
    assert_eq!(failed.when.site.and_then(|site| site.line), Some(9));
}

#[test]
fn a_call_that_fails_otherwise_is_no_lack_of_memory() {
    let mut trace = Trace::new();
    trace.push(alloc(0x1000, 4 * MIB).native("app", "main", "/src/app.c", 3));
    trace.push(event(Kind::AllocFailed, [9 * MIB, 712, 11, 0]).native(
        "app",
        "main",
        "/src/app.c",
        9,
    ));
    let row = report(&trace);
    assert_eq!(
        (row.out_of_memory.is_some(), row.times_out_of_memory),
        (false, 0)
    );
}

//! The largest live blocks: how large, how old, whose. `gpumem blocks`, `gpumem.blocks/1`.
//!
//! A block is what the innermost layer that sees it holds: a tensor where a framework's blocks are seen, else an allocation of
//! the driver's. Of a process that has ended it is what was alive when it began to end.

use std::collections::HashMap;

use gpumem_wire::DeviceOrdinal;
use serde::Serialize;

use crate::insight::category::{Category, category};
use crate::insight::clock::{ClockKind, process_clock};
use crate::insight::leaks::SiteRow;
use crate::insight::who;
use crate::model::block::{Block, blocks_at_exit};
use crate::model::peak::Holder;
use crate::model::place::Framework;
use crate::model::totals::saturating_sum;
use crate::model::{ClockSource, Layer, Process, Session};
use crate::symbols::{frames, operator, site};

/// The first key of the report.
pub const SCHEMA: &str = "gpumem.blocks/1";

/// The whole report.
#[derive(Clone, Debug, Serialize)]
pub struct BlocksReport {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// One row a process and device; host memory is a row of its own.
    pub processes: Vec<ProcessBlocks>,
}

/// The blocks of one process on one device.
#[derive(Clone, Debug, Serialize)]
pub struct ProcessBlocks {
    /// The process id, as the process sees it.
    pub pid: u32,
    /// Its command line, secrets masked.
    pub command: String,
    /// Its host.
    pub host: String,
    /// Its rank in its job.
    pub rank: Option<u32>,
    /// The device's ordinal in this process; null for host memory, and where the device could not be told.
    pub device: Option<i16>,
    /// Whether `device` is null because this is host memory.
    pub host_memory: bool,
    /// Whether these are the blocks at exit: those that were alive when the process began to end.
    pub at_exit: bool,
    /// The moment that ages count to, in nanoseconds since the epoch: when the process began to end, else its last event.
    pub time_ns: u64,
    /// What counts the steps; null where the process has no clock.
    pub clock: Option<ClockKind>,
    /// The step of that moment; null without a clock.
    pub step: Option<u32>,
    /// Bytes of all blocks.
    pub live_bytes: u64,
    /// How many there are.
    pub live_blocks: u64,
    /// Equal ones together, the largest first; of one size those that are most.
    pub groups: Vec<GroupRow>,
    /// One by one, the largest first; of one size the oldest.
    pub blocks: Vec<BlockRow>,
    /// Groups of which not all are shown, or none.
    pub left_out_groups: u64,
    /// Events that were lost: with any, the figures are inexact.
    pub lost_events: u64,
}

/// Blocks of one size, layer, site and category.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GroupRow {
    /// How many.
    pub blocks: u64,
    /// Bytes of each.
    pub size: u64,
    /// Their layer.
    pub layer: &'static str,
    /// When the first was made.
    pub oldest: Born,
    /// When the last was made.
    pub newest: Born,
    /// Whose line made them; null where no name is known, as of what torch's own threads make in a backward pass.
    pub site: Option<SiteRow>,
    /// The operator of torch that made them, where there is no line.
    pub operator: Option<String>,
    /// What they are to the program.
    pub category: Category,
}

/// One block.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BlockRow {
    /// Its address; in the layer `physical` its handle.
    pub address: u64,
    /// Its bytes.
    pub size: u64,
    /// Its layer.
    pub layer: &'static str,
    /// When it was made.
    pub born: Born,
    /// Whose line made it; null where no name is known.
    pub site: Option<SiteRow>,
    /// The operator of torch that made it, where there is no line.
    pub operator: Option<String>,
    /// What it is to the program.
    pub category: Category,
    /// The stream that stream-ordered memory was allocated on, 0 for the default one; null for other memory.
    pub stream: Option<u64>,
}

/// A birth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Born {
    /// Nanoseconds since the epoch.
    pub time_ns: u64,
    /// The step of the process's clock; null where it has none.
    pub step: Option<u32>,
}

/// The live blocks of all processes of a session. `top`: groups of each process and device, and blocks.
pub fn blocks(session: &Session, top: usize) -> BlocksReport {
    let processes = session.processes.iter();
    BlocksReport {
        schema: SCHEMA,
        processes: processes
            .flat_map(|process| of_process(process, top))
            .collect(),
    }
}

fn of_process(process: &Process, top: usize) -> Vec<ProcessBlocks> {
    let mut by_device: HashMap<DeviceOrdinal, Vec<Block>> = HashMap::new();
    for block in blocks_at_exit(process) {
        // A segment is its blocks and what is cached between them.
        if !block.segment_of.is_some_and(Framework::blocks_are_seen) {
            by_device.entry(block.device).or_default().push(block);
        }
    }
    let mut devices: Vec<_> = by_device.into_iter().collect();
    // Host memory has the lowest number and comes last.
    devices.sort_by_key(|(device, _)| (device.0 < 0, *device));
    let devices = devices.into_iter();
    devices
        .map(|(device, blocks)| on_device(process, device, blocks, top))
        .collect()
}

fn on_device(
    process: &Process,
    device: DeviceOrdinal,
    mut all: Vec<Block>,
    top: usize,
) -> ProcessBlocks {
    let definition = process.definition();
    let clock = process_clock(process.history());
    let mut makers = Makers {
        process,
        known: HashMap::new(),
    };
    all.sort_by_key(|block| (std::cmp::Reverse(block.bytes), block.born_seq));
    let live_bytes = saturating_sum(all.iter().map(|block| block.bytes));
    let live_blocks = all.len() as u64;
    let mut groups = grouped(&all, clock, &mut makers);
    let left_out_groups = groups.len().saturating_sub(top) as u64;
    groups.truncate(top);
    all.truncate(top);
    let at_exit = process.at_exit();
    ProcessBlocks {
        pid: definition.pid,
        command: who::command(process),
        host: definition.host.clone(),
        rank: who::rank(process),
        device: (device.0 >= 0).then_some(device.0),
        host_memory: device == DeviceOrdinal::HOST,
        at_exit: at_exit.is_some(),
        time_ns: at_exit.map_or_else(|| process.last_ns(), |at_exit| at_exit.time_ns),
        clock: clock.map(ClockKind::from),
        step: clock.map(|clock| process.history().ticks(clock)),
        live_bytes,
        live_blocks,
        groups,
        blocks: all
            .iter()
            .map(|block| {
                let maker = makers.of(block).clone();
                BlockRow {
                    address: block.address,
                    size: block.bytes,
                    layer: block.layer.name(),
                    born: born(block, clock),
                    site: maker.site,
                    operator: maker.operator,
                    category: maker.category,
                    stream: block.stream,
                }
            })
            .collect(),
        left_out_groups,
        lost_events: process.lost().total(),
    }
}

/// Equal blocks together: of one size, layer and maker. `all`: the largest first.
fn grouped(all: &[Block], clock: Option<ClockSource>, makers: &mut Makers<'_>) -> Vec<GroupRow> {
    let mut groups: Vec<GroupRow> = Vec::new();
    let mut known: HashMap<(u64, Layer, Maker), usize> = HashMap::new();
    for block in all {
        let born = born(block, clock);
        let maker = makers.of(block);
        let index = *known
            .entry((block.bytes, block.layer, maker.clone()))
            .or_insert_with(|| {
                groups.push(GroupRow {
                    blocks: 0,
                    size: block.bytes,
                    layer: block.layer.name(),
                    oldest: born,
                    newest: born,
                    site: maker.site.clone(),
                    operator: maker.operator.clone(),
                    category: maker.category,
                });
                groups.len() - 1
            });
        if let Some(group) = groups.get_mut(index) {
            group.blocks += 1;
            group.oldest = group.oldest.min(born);
            group.newest = group.newest.max(born);
        }
    }
    groups.sort_by_key(|group| std::cmp::Reverse((group.size, group.blocks)));
    groups
}

fn born(block: &Block, clock: Option<ClockSource>) -> Born {
    Born {
        time_ns: block.born_ns,
        step: clock.and_then(|clock| block.step(clock)),
    }
}

/// Who made blocks: what one holder's have in common.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Maker {
    site: Option<SiteRow>,
    operator: Option<String>,
    category: Category,
}

/// The makers of blocks, each found once.
struct Makers<'a> {
    process: &'a Process,
    known: HashMap<Holder, Maker>,
}

impl Makers<'_> {
    fn of(&mut self, block: &Block) -> &Maker {
        let process = self.process;
        let share = block.share(process);
        self.known.entry(share.holder).or_insert_with(|| {
            let frames = frames(process, block.stack);
            let site = site(process, block.stack).map(SiteRow::from);
            Maker {
                operator: site.is_none().then(|| operator(&frames)).flatten(),
                category: category(process, &share, &frames),
                site,
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::testing::{
        KIB, MIB, Trace, alloc, backward_begin, backward_end, block, block_free, event,
        exit_handler, finalising, free, optimizer_step, torch_segment,
    };
    use gpumem_wire::Kind;

    fn report(trace: &Trace, top: usize) -> Vec<ProcessBlocks> {
        let mut session = Session::default();
        session.processes.push(trace.process());
        blocks(&session, top).processes
    }

    #[test]
    fn segments_are_not_counted_beside_their_blocks_and_equal_ones_are_together() {
        let mut trace = Trace::new();
        trace.push(torch_segment(0x1000_0000, 64 * MIB));
        trace.push(block(0x1000_0000, 8 * MIB).at("model.py:12 Layer"));
        for number in 0..3 {
            let at = 0x1100_0000 + number * 4 * MIB;
            trace.push(block(at, 4 * MIB).at("train.py:31 step"));
        }
        trace.push(block(0x1200_0000, 4 * MIB).at("train.py:40 step"));
        trace.push(alloc(0x9000_0000, 6 * MIB).native("libfoo.so", "grow", "foo.c", 7));
        let rows = report(&trace, 3);
        let [row] = &rows[..] else { panic!("{rows:?}") };
        assert_eq!((row.live_bytes, row.live_blocks), (30 * MIB, 6));
        let told: Vec<_> = row
            .groups
            .iter()
            .map(|group| {
                let site = group.site.as_ref().expect("a site");
                (group.blocks, group.size / MIB, group.layer, site.line)
            })
            .collect();
        assert_eq!(
            told,
            [
                (1, 8, "torch-block", Some(12)),
                (1, 6, "device", Some(7)),
                (3, 4, "torch-block", Some(31))
            ]
        );
        assert_eq!(row.left_out_groups, 1);
        let addresses: Vec<u64> = row.blocks.iter().map(|block| block.address).collect();
        assert_eq!(addresses, [0x1000_0000, 0x9000_0000, 0x1100_0000]);
    }

    #[test]
    fn births_are_told_by_the_clock_of_the_process() {
        let mut trace = Trace::new();
        trace.push(block(0x1000, MIB).at("train.py:1"));
        for step in 0..20u64 {
            if step == 15 {
                trace.push(block(0x9_0000_0000, 2 * MIB).at("train.py:2"));
            }
            trace.push(optimizer_step().after_ms(100));
        }
        let rows = report(&trace, 10);
        let steps: Vec<_> = rows[0].groups.iter().map(|row| row.oldest.step).collect();
        assert_eq!(steps, [Some(15), Some(0)]);
        assert_eq!(rows[0].step, Some(20));
        assert_eq!(rows[0].clock, Some(ClockKind::OptimizerStep));
    }

    #[test]
    fn what_the_end_gives_back_was_alive_at_exit_and_what_it_takes_was_not() {
        let mut trace = Trace::new();
        trace.play([
            alloc(0x1000, 3 * MIB),
            alloc(0x100_0000, MIB),
            alloc(0x200_0000, 2 * MIB),
            free(0x100_0000),
            finalising(),
            free(0x1000),
            // At the same address, after the end began.
            alloc(0x1000, 5 * MIB),
            exit_handler(),
            free(0x1000),
            alloc(0x300_0000, 7 * MIB),
        ]);
        let rows = report(&trace, 10);
        let sizes: Vec<u64> = rows[0].blocks.iter().map(|row| row.size).collect();
        assert_eq!(sizes, [3 * MIB, 2 * MIB]);
        assert!(rows[0].at_exit);
        let mut trace = Trace::new();
        trace.play([
            block(0x1000, 3 * KIB),
            block(0x2000, KIB),
            block_free(0x1000),
        ]);
        let rows = report(&trace, 10);
        assert_eq!((rows[0].live_bytes, rows[0].at_exit), (KIB, false));
    }

    #[test]
    fn what_blocks_are_is_told_also_of_what_the_end_gave_back() {
        let mut trace = Trace::new();
        trace.push(torch_segment(0x10_0000_0000, 64 * MIB));
        trace.push(block(0x10_0000_0000, 8 * MIB).at("train.py:1"));
        trace.push(backward_begin());
        trace.push(block(0x10_1000_0000, 4 * MIB).at("train.py:1"));
        trace.push(backward_end());
        trace.push(finalising());
        trace.push(block_free(0x10_1000_0000));
        let rows = report(&trace, 10);
        let told: Vec<_> = rows[0]
            .groups
            .iter()
            .map(|row| (row.size / MIB, row.category))
            .collect();
        assert_eq!(told, [(8, Category::Other), (4, Category::Gradient)]);
    }

    #[test]
    fn stream_ordered_memory_says_its_stream() {
        let mut trace = Trace::new();
        trace.push(event(Kind::PoolAlloc, [0x1000, 3 * MIB, 0, 0x77]));
        trace.push(event(Kind::PoolAlloc, [0x100_0000, 2 * MIB, 0, 0]));
        trace.push(alloc(0x200_0000, MIB));
        let rows = report(&trace, 10);
        let streams: Vec<_> = rows[0].blocks.iter().map(|row| row.stream).collect();
        assert_eq!(streams, [Some(0x77), Some(0), None]);
    }

    #[test]
    fn devices_come_before_host_memory() {
        let mut trace = Trace::new();
        trace.push(alloc(0x1000, MIB).device(-2));
        trace.push(alloc(0x10_0000_0000, MIB).device(1));
        trace.push(alloc(0x20_0000_0000, MIB).device(0));
        let rows = report(&trace, 10);
        let devices: Vec<_> = rows
            .iter()
            .map(|row| (row.device, row.host_memory))
            .collect();
        assert_eq!(devices, [(Some(0), false), (Some(1), false), (None, true)]);
    }
}

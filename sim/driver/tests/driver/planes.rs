//! Copies and fills of rows, and attributes of any address.

use crate::library::*;

#[test]
fn rows_land_where_they_belong() {
    isolated("planes::rows_land_where_they_belong", &[], |driver| {
        driver.start();
        let (pitch, rows) = (16, 4);
        let plane = driver.alloc(pitch * rows);
        let mut rectangle = [1, 2, 3, 4, 5, 6];
        let to_plane = Plane2D {
            from: Side2D::host(rectangle.as_mut_ptr(), 3),
            to: Side2D::device(plane, pitch, (2, 1)),
            row_bytes: 3,
            rows: 2,
        };
        assert_eq!(driver.cuMemcpy2D_v2(&to_plane), SUCCESS);
        let mut all = [0; 64];
        assert_eq!(driver.cuMemcpyDtoH_v2(all.as_mut_ptr(), plane, 64), SUCCESS);
        let mut expected = [0; 64];
        expected[18..21].copy_from_slice(&[1, 2, 3]);
        expected[34..37].copy_from_slice(&[4, 5, 6]);
        assert_eq!(all, expected);

        assert_eq!(driver.cuMemsetD2D8_v2(plane, pitch, 9, 2, 4), SUCCESS);
        assert_eq!(driver.cuMemcpyDtoH_v2(all.as_mut_ptr(), plane, 64), SUCCESS);
        for row in 0..4 {
            expected[row * 16..row * 16 + 2].fill(9);
        }
        assert_eq!(all, expected);
    });
}

#[test]
fn rows_beyond_the_memory_are_refused() {
    isolated(
        "planes::rows_beyond_the_memory_are_refused",
        &[],
        |driver| {
            driver.start();
            let plane = driver.alloc(64);
            let mut host = [0; 80];
            for (pitch, place, rows) in [(16, (0, 1), 4), (16, (0, 0), 5), (2, (0, 0), 2)] {
                let parameters = Plane2D {
                    from: Side2D::host(host.as_mut_ptr(), 16),
                    to: Side2D::device(plane, pitch, place),
                    row_bytes: 8,
                    rows,
                };
                assert_eq!(
                    driver.cuMemcpy2D_v2(&parameters),
                    INVALID_VALUE,
                    "{pitch} {rows}"
                );
            }
            assert_eq!(driver.cuMemsetD2D8_v2(plane, 16, 1, 8, 5), INVALID_VALUE);
            assert_eq!(driver.cuMemsetD2D8_v2(plane, 4, 1, 8, 2), INVALID_VALUE);
        },
    );
}

#[test]
fn several_attributes_of_an_unknown_address_are_nothing() {
    let test = "planes::several_attributes_of_an_unknown_address_are_nothing";
    isolated(test, &[], |driver| {
        driver.start();
        let memory = driver.alloc(4096);
        let ask = |address| {
            let [mut kind, mut pointer, mut device] = [0, 7, 0];
            let outs = [&raw mut kind, &raw mut pointer, &raw mut device];
            let wanted = [2, 3, 9];
            let result = driver.cuPointerGetAttributes(3, wanted.as_ptr(), outs.as_ptr(), address);
            assert_eq!(result, SUCCESS);
            (kind as u32, pointer, device as i32)
        };
        assert_eq!(ask(memory), (2, memory, 0));
        assert_eq!(ask(&raw const memory as u64), (0, 0, -2));
        let mut out = 7;
        let outs = [&raw mut out];
        let result = driver.cuPointerGetAttributes(1, [99].as_ptr(), outs.as_ptr(), memory);
        assert_eq!(result, INVALID_VALUE);
    });
}

//! Keeps a list in time short: old neighbours are merged, the newest stay as they are.

/// Entries at the new end that are never merged.
const NEWEST: usize = 32;
/// Entries that a list is thinned to.
const KEPT: usize = 96;
/// Entries at which a list is thinned.
pub(super) const FULL: usize = 160;

/// Merges neighbours until the list is short again. Those of which `weight` says the least go first, so that what remains
/// is of about equal weight.
pub(super) fn thin<T>(
    list: &mut Vec<T>,
    weight: impl Fn(&T, &T) -> u64,
    mut merge: impl FnMut(&T, &T) -> T,
) {
    if list.len() < FULL {
        return;
    }
    while list.len() > KEPT {
        let old = &list[..list.len() - NEWEST];
        let Some((index, _)) = old
            .windows(2)
            .enumerate()
            .filter_map(|(index, pair)| match pair {
                [a, b] => Some((index, weight(a, b))),
                _ => None,
            })
            .min_by_key(|&(_, weight)| weight)
        else {
            return;
        };
        let merged = merge(&list[index], &list[index + 1]);
        list[index] = merged;
        list.remove(index + 1);
    }
}

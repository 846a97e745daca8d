//! Where a list changes its form: as in Valkey 9.1, which gave these figures.

use tidewheel_collections::{List, ListLimits, ListRef};

/// The setting, the length of the elements, how many of them make the list large, and how many are
/// left when it is packed again.
const CHANGES: [(i64, usize, usize, Option<usize>); 20] = [
    (-2, 0, 4094, Some(2044)),
    (-2, 1, 2730, Some(1363)),
    (-2, 16, 455, Some(227)),
    (-2, 100, 80, Some(39)),
    (-2, 127, 63, Some(31)),
    (-2, 1000, 9, Some(4)),
    (-2, 3000, 3, Some(1)),
    (-2, 4090, 3, None),
    (-2, 8185, 2, None),
    (-2, 8186, 1, None),
    (-1, 16, 228, Some(113)),
    (-1, 100, 40, Some(19)),
    (-1, 3000, 2, None),
    (5, 0, 6, Some(2)),
    (5, 4090, 3, Some(2)),
    (5, 8185, 2, Some(1)),
    (5, 8186, 1, None),
    (100, 16, 101, Some(50)),
    (100, 100, 80, Some(50)),
    (100, 1000, 9, Some(8)),
];

fn is_large(list: &List) -> bool {
    matches!(list.get(), ListRef::Large(_))
}

#[test]
fn a_list_changes_its_form_where_the_public_server_does() {
    for (setting, len, large, packed) in CHANGES {
        let limits = ListLimits::new(setting);
        let element = vec![b'x'; len];
        let mut list = List::new();
        while !is_large(&list) {
            list.push_back(&element, &limits);
        }
        assert_eq!(list.get().len(), large, "{setting}, {len} bytes: grows");
        while is_large(&list) && list.get().len() > 1 {
            list.drop_back(1, &limits);
            list.pack(&limits);
        }
        let again = (!is_large(&list)).then(|| list.get().len());
        assert_eq!(again, packed, "{setting}, {len} bytes: shrinks");
    }
}

//! Random operations on caches of any configuration against a naive model, compared after every step, in
//! virtual time.

use crate::support::op::Op;
use crate::support::setup::Setup;
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_cache_behaves_like_its_model(
        setup in any::<u64>().prop_map(Setup::from_bits),
        ops in prop::collection::vec(any::<u64>().prop_map(Op::from_bits), 1..200),
    ) {
        crate::support::run(&setup, &ops);
    }
}

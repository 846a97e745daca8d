//! Random operations on caches of any configuration against a naive model, compared after every step, in
//! virtual time.

mod support;

use proptest::prelude::*;
use support::op::Op;
use support::setup::Setup;

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_cache_behaves_like_its_model(
        setup in any::<u64>().prop_map(Setup::from_bits),
        ops in prop::collection::vec(any::<u64>().prop_map(Op::from_bits), 1..200),
    ) {
        support::run(&setup, &ops);
    }
}

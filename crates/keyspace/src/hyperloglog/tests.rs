//! Compares HyperLogLogs with plain registers, and reads bytes at random.

use proptest::prelude::*;

use super::*;

const SPARSE: usize = 3_000;

fn add(bytes: &mut Vec<u8>, new: Rank, sparse_max: usize) -> bool {
    let encoding = encoding(bytes).expect("a HyperLogLog");
    raise(bytes, encoding, new, sparse_max).expect("sound")
}

fn add_again(bytes: &mut Vec<u8>, new: Rank) -> Result<bool, Corrupt> {
    let encoding = encoding(bytes).expect("still one");
    raise(bytes, encoding, new, SPARSE)
}

fn registers(bytes: &[u8]) -> Vec<u8> {
    let mut registers = Registers::default();
    registers
        .merge(bytes, encoding(bytes).expect("a HyperLogLog"))
        .expect("sound");
    registers.as_slice().to_vec()
}

fn ranks() -> impl Strategy<Value = Vec<(usize, u8)>> {
    let register = prop_oneof![0..40_usize, Just(REGISTERS - 1), 0..REGISTERS];
    proptest::collection::vec((register, prop_oneof![1..5_u8, 1..52_u8]), 0..80)
}

proptest! {
    #[test]
    fn both_encodings_keep_what_plain_registers_keep(ranks in ranks(), sparse_max in 0..200_usize) {
        let mut plain = vec![0; REGISTERS];
        let mut bytes = empty();
        let mut dense = to_dense(&empty()).expect("sound");
        for (register, rank) in ranks {
            let new = Rank { register, rank };
            let lower = plain[register] < rank;
            prop_assert_eq!(add(&mut bytes, new, sparse_max), lower);
            prop_assert_eq!(add(&mut dense, new, 0), lower);
            plain[register] = rank.max(plain[register]);
            let encoding = encoding(&bytes).expect("a HyperLogLog");
            prop_assert!(encoding == Encoding::Dense || bytes.len() <= sparse_max.max(18));
        }
        prop_assert_eq!(&registers(&bytes), &plain);
        prop_assert_eq!(&registers(&dense), &plain);
        let encoding = encoding(&bytes).expect("a HyperLogLog");
        prop_assert_eq!(count(&bytes, encoding), count(&dense, Encoding::Dense));
    }

    #[test]
    fn no_bytes_make_it_panic(runs in proptest::collection::vec(any::<u8>(), 0..300), number in 0..REGISTERS, rank in 1..52_u8) {
        let mut bytes = header::new(Encoding::Sparse);
        bytes.extend_from_slice(&runs);
        let new = Rank { register: number, rank };
        let _ = (count(&bytes, Encoding::Sparse), describe(&bytes), to_dense(&bytes));
        let _ = Registers::default().merge(&bytes, Encoding::Sparse);
        if raise(&mut bytes, Encoding::Sparse, new, SPARSE).is_ok() {
            prop_assert_eq!(add_again(&mut bytes, new), Ok(false));
        }
    }
}

#[test]
fn the_estimate_is_within_four_standard_errors() {
    let (mut bytes, mut checked) = (empty(), 1);
    for i in 1..=100_000_u64 {
        add(&mut bytes, Rank::of(i.to_string().as_bytes()), SPARSE);
        if i == checked {
            let estimate = count(&bytes, encoding(&bytes).expect("one")).expect("sound");
            let error = (estimate as f64 - i as f64).abs() / i as f64;
            assert!(error <= 4.0 * 1.04 / 128.0, "{estimate} for {i}");
            checked = checked * 3 + 1;
        }
    }
    assert_eq!(encoding(&bytes), Some(Encoding::Dense));
}

#[test]
fn merged_registers_are_encoded_as_they_are_best() {
    let mut registers = Registers::default();
    assert_eq!(registers.encode(Some(SPARSE))[HEADER..], [0x7f, 0xff]);
    let mut one = empty();
    add(
        &mut one,
        Rank {
            register: 5,
            rank: 3,
        },
        SPARSE,
    );
    registers.merge(&one, Encoding::Sparse).expect("sound");
    let sparse = registers.encode(Some(SPARSE));
    assert_eq!(describe(&sparse), Ok("z:5 v:3,1 Z:16378".to_owned()));
    assert_eq!(cached(&sparse), None);
    assert_eq!(registers.encode(Some(19)).len(), DENSE_LEN);
    assert_eq!(registers.encode(None).len(), DENSE_LEN);
    add(
        &mut one,
        Rank {
            register: 5,
            rank: 33,
        },
        SPARSE,
    );
    assert_eq!(encoding(&one), Some(Encoding::Dense));
}

/// The runs of a string of a hundred megabytes overflowed a counter, and what came next was written
/// outside.
#[test]
fn runs_that_exceed_the_registers_are_refused() {
    let mut bytes = header::new(Encoding::Sparse);
    for _ in 0..20_000 {
        bytes.extend_from_slice(&[0x7f, 0xff, 0x3f]);
    }
    bytes.push(0x80);
    assert_eq!(count(&bytes, Encoding::Sparse), Err(Corrupt));
    assert_eq!(to_dense(&bytes), Err(Corrupt));
    assert_eq!(describe(&bytes), Err(Corrupt));
}

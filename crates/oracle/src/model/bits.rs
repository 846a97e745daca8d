//! Bits of strings.

use tidewheel_resp::Reply;

use super::{Answered, Bytes, Expect, Kind, Model, int};
use crate::draw::Draw;

impl Draw<'_> {
    /// A command for the bits of strings.
    pub fn bits(&mut self) -> String {
        let (k, a, b) = (self.key("b"), self.key("b"), self.key("b"));
        let (offset, bit) = (self.below(200), self.below(2));
        match self.below(8) {
            0 | 1 => format!("SETBIT {k} {offset} {bit}"),
            2 => format!("GETBIT {k} {offset}"),
            3 => format!("BITCOUNT {k}"),
            4 => {
                let unit = self.pick(&["", "BYTE", "BIT"]);
                format!("BITCOUNT {k} {} {} {unit}", self.near(30), self.near(60))
            }
            5 => format!("BITPOS {k} {bit} {} {} BIT", self.near(30), self.near(90)),
            6 => match self.pick(&["AND", "OR", "XOR", "NOT"]) {
                "NOT" => format!("BITOP NOT {k} {a}"),
                op => format!("BITOP {op} {k} {a} {b}"),
            },
            _ => {
                let (width, by) = (1 + self.below(12), self.near(40));
                format!("BITFIELD {k} OVERFLOW WRAP INCRBY u{width} {offset} {by}")
            }
        }
    }
}

impl Model {
    pub(super) fn bits(&mut self, w: &[&str]) -> Answered {
        let number = |at: usize| w[at].parse::<i64>().unwrap();
        let told = match w[0] {
            "SETBIT" => {
                let new = number(3) == 1;
                let set = self.change_bits(w[1], number(2) as usize, 1, |_| u64::from(new));
                set.map(|old| int(old as i64))
            }
            "GETBIT" => self
                .bits_of(w[1])
                .map(|bits| int(bits.get(number(2) as usize) == Some(&true))),
            "BITCOUNT" => self.bits_of(w[1]).map(|bits| {
                let (start, end) = match w.len() {
                    2 => (0, bits.len()),
                    _ if number(3) < number(2) && number(2) < 0 => (0, 0),
                    _ => span(bits.len(), number(2), number(3), w.get(4) == Some(&"BIT")),
                };
                int(bits[start..end].iter().filter(|bit| **bit).count())
            }),
            "BITPOS" => {
                let is_there = matches!(self.text_at(w[1]), Ok(Some(_)));
                self.bits_of(w[1]).map(|bits| {
                    if !is_there {
                        return int(if w[2] == "1" { -1 } else { 0 });
                    }
                    let (start, end) = span(bits.len(), number(3), number(4), true);
                    let at = (start..end).find(|at| bits[*at] == (w[2] == "1"));
                    int(at.map_or(-1, |at| at as i64))
                })
            }
            "BITOP" => self.bitop(w[1], w[2], &w[3..]),
            "BITFIELD" => {
                let (width, offset, by) =
                    (w[5][1..].parse().unwrap(), number(6) as usize, number(7));
                let most = (1_i64 << width) - 1;
                self.change_bits(w[1], offset, width, |old| ((old as i64 + by) & most) as u64)
                    .map(|old| Expect::Flat(vec![super::integer((old as i64 + by) & most)]))
            }
            _ => return None,
        };
        Some(told)
    }

    fn bits_of(&mut self, key: &str) -> Result<Vec<bool>, Reply> {
        let text = self.text_at(key)?.cloned().unwrap_or_default();
        let bits = text
            .iter()
            .flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1 == 1));
        Ok(bits.collect())
    }

    /// Changes a number of some bits, and returns what it was.
    fn change_bits(
        &mut self,
        key: &str,
        offset: usize,
        width: usize,
        change: impl FnOnce(u64) -> u64,
    ) -> Result<u64, Reply> {
        let mut bits = self.bits_of(key)?;
        let grown = bits.len().max((offset + width).div_ceil(8) * 8);
        let grows = grown > bits.len();
        bits.resize(grown, false);
        let old = bits[offset..offset + width]
            .iter()
            .fold(0, |sum, bit| sum << 1 | u64::from(*bit));
        let new = change(old);
        for at in 0..width {
            bits[offset + at] = new >> (width - 1 - at) & 1 == 1;
        }
        if grows || new != old {
            *self.text_or_new(key)? = bytes(&bits);
            self.note(key.as_bytes(), "setbit");
        }
        Ok(old)
    }

    fn bitop(&mut self, op: &str, to: &str, keys: &[&str]) -> Result<Expect, Reply> {
        let mut texts = Vec::new();
        for key in keys {
            texts.push(self.text_at(key)?.cloned().unwrap_or_default());
        }
        let len = texts.iter().map(Vec::len).max().unwrap_or(0);
        let byte = |text: &Bytes, at: usize| text.get(at).copied().unwrap_or(0);
        let join = |at: usize| {
            let bytes = texts.iter().map(|text| byte(text, at));
            let joined = bytes.reduce(|a, b| match op {
                "AND" => a & b,
                "OR" => a | b,
                _ => a ^ b,
            });
            if op == "NOT" {
                !byte(&texts[0], at)
            } else {
                joined.unwrap_or(0)
            }
        };
        let result: Bytes = (0..len).map(join).collect();
        if len > 0 {
            self.put(to.as_bytes(), Kind::Text(result), None);
            self.note(to.as_bytes(), "set");
        } else if self.entries.remove(&(self.db, to.into())).is_some() {
            self.note(to.as_bytes(), "del");
        }
        Ok(int(len))
    }
}

fn bytes(bits: &[bool]) -> Bytes {
    let byte = |bits: &[bool]| bits.iter().fold(0, |byte, bit| byte << 1 | u8::from(*bit));
    bits.chunks(8).map(byte).collect()
}

/// The bits from one place to another, which count bits or bytes.
fn span(len: usize, start: i64, end: i64, of_bits: bool) -> (usize, usize) {
    let (unit, units) = if of_bits { (1, len) } else { (8, len / 8) };
    let place = |at: i64| if at < 0 { at + units as i64 } else { at };
    let start = place(start).max(0) as usize;
    let end = (place(end).max(0) as usize + 1).min(units);
    if start >= end {
        (0, 0)
    } else {
        (start * unit, end * unit)
    }
}

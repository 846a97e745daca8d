//! SORT.

use tidewheel_resp::Reply;

use super::{Answered, Bytes, Kind, Model, bulk, error, flat, int, wrong_type};
use crate::draw::Draw;

impl Draw<'_> {
    /// SORT.
    pub fn sort(&mut self) -> String {
        let letter = self.pick(&["l", "s", "z"]);
        let (k, to) = (self.key(letter), self.key("l"));
        let alpha = self.pick(&["ALPHA", "ALPHA", ""]);
        let order = self.pick(&["", "DESC"]);
        let limit = match self.once_in(3) {
            true => format!("LIMIT {} {}", self.below(4), self.below(6)),
            false => String::new(),
        };
        let store = if self.once_in(3) {
            format!("STORE {to}")
        } else {
            String::new()
        };
        format!("SORT {k} {limit} {alpha} {order} {store}")
    }
}

impl Model {
    pub(super) fn sort(&mut self, w: &[&str]) -> Answered {
        (w[0] == "SORT").then(|| {
            let found = self.sorted(w)?;
            let Some(at) = w.iter().position(|word| *word == "STORE") else {
                return Ok(flat(found.into_iter().map(|element| bulk(Some(element)))));
            };
            let len = found.len();
            self.store(w[at + 1], Kind::List(found.into()), "sortstore");
            Ok(int(len))
        })
    }

    fn sorted(&mut self, w: &[&str]) -> Result<Vec<Bytes>, Reply> {
        let mut all: Vec<Bytes> = match self.entry(w[1].as_bytes()).map(|entry| &entry.kind) {
            None => Vec::new(),
            Some(Kind::List(of)) => of.iter().cloned().collect(),
            Some(Kind::Set(of)) => of.keys().cloned().collect(),
            Some(Kind::ZSet(of)) => of.keys().cloned().collect(),
            Some(_) => return Err(wrong_type()),
        };
        let number = |element: &Bytes| String::from_utf8_lossy(element).parse::<f64>().ok();
        if w.contains(&"ALPHA") {
            all.sort();
        } else if all.iter().all(|element| number(element).is_some()) {
            all.sort_by(|a, b| number(a).partial_cmp(&number(b)).unwrap());
        } else {
            return Err(error(
                "ERR One or more scores can't be converted into double",
            ));
        }
        if w.contains(&"DESC") {
            all.reverse();
        }
        if let Some(at) = w.iter().position(|word| *word == "LIMIT") {
            let (skip, most) = (w[at + 1].parse().unwrap(), w[at + 2].parse().unwrap());
            all = all.into_iter().skip(skip).take(most).collect();
        }
        Ok(all)
    }
}

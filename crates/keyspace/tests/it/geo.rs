//! Geospatial indexes, by themselves and beside a stock redis-server.

use tidewheel_resp::{Protocol, Reply};

use crate::common::{Rig, show};

const SICILY: &str = "GEOADD s 13.361389 38.115556 Palermo 15.087269 37.502669 Catania";

#[test]
fn positions_are_stored_read_and_measured() {
    let mut rig = Rig::new();
    rig.notify("KEA");
    assert_eq!(rig.run(SICILY), ":2");
    assert_eq!(rig.events(), ["0:new:s", "0:zadd:s"][1..]);
    rig.script(
        "TYPE s -> zset
         ZSCORE s Palermo -> '3479099956230698'
         GEODIST s Palermo Catania -> '166274.1516'
         GEODIST s Palermo Catania km -> '166.2742'
         GEODIST s Palermo nope -> nil
         GEODIST none a b -> nil
         GEODIST s Palermo Catania parsec -> -ERR unsupported unit provided. please use M, KM, FT, MI
         GEOHASH s Palermo nope Catania -> ['sqc8b49rny0' nil 'sqdtr74hyu0']
         GEOHASH none a -> [nil]
         GEOPOS s Palermo nope -> [['13.36138933897018433' '38.11555639549629859'] nil]
         GEOADD s NX 1 1 Palermo -> :0
         GEOADD s XX CH 13.4 38.1 Palermo 1 1 new -> :1
         GEOADD s 200 0 far -> -ERR invalid longitude,latitude pair 200.000000,0.000000
         GEOADD s 1 x far -> -ERR value is not a valid float
         GEOADD s 1 1 a 2 2 -> -ERR syntax error
         GEOADD s NX XX 1 1 a -> -ERR syntax error",
    );
    rig.protocol = Protocol::Resp3;
    let position = rig.run("GEOPOS s Catania");
    assert!(
        position.starts_with("[[Double(15.08726745843887"),
        "{position}"
    );
}

#[test]
fn areas_are_searched_and_stored() {
    let mut rig = Rig::new();
    rig.run(SICILY);
    rig.run("GEOADD s 12.758489 38.788135 edge1 17.241510 38.788135 edge2");
    rig.script(
        "GEOSEARCH s FROMLONLAT 15 37 BYRADIUS 200 km ASC -> ['Catania' 'Palermo']
         GEOSEARCH s FROMLONLAT 15 37 BYBOX 400 400 km DESC WITHDIST -> [['edge1' '279.7405'] ['edge2' '279.7403'] ['Palermo' '190.4424'] ['Catania' '56.4413']]
         GEOSEARCH s FROMMEMBER Palermo BYRADIUS 0 m WITHHASH -> [['Palermo' :3479099956230698]]
         GEOSEARCH s FROMLONLAT 15 37 BYRADIUS 200 km COUNT 1 -> ['Catania']
         GEORADIUS s 15 37 200 km DESC -> ['Palermo' 'Catania']
         GEORADIUS_RO s 15 37 200 km STORE d -> -ERR syntax error
         GEORADIUSBYMEMBER s Palermo 200 km ASC -> ['Palermo' 'edge1' 'Catania']
         GEORADIUSBYMEMBER s Palermo 200 km STORE d -> :3
         ZRANGE d 0 -1 -> ['Palermo' 'edge1' 'Catania']
         GEORADIUS s 15 37 200 km STOREDIST d COUNT 1 -> :1
         GEOSEARCHSTORE d s FROMLONLAT 15 37 BYRADIUS 200 km STOREDIST -> :2
         ZRANGE d 0 -1 -> ['Catania' 'Palermo']
         GEOSEARCHSTORE d s FROMLONLAT 100 37 BYRADIUS 200 km -> :0
         EXISTS d -> :0
         GEORADIUS none 15 37 200 km STORE s -> :0
         EXISTS s -> :0",
    );
}

#[cfg(unix)]
mod beside_redis {
    use super::*;
    use crate::redis::Redis;
    use tidewheel_oracle::Dice;

    fn longitude(dice: &mut Dice) -> String {
        match dice.below(12) {
            0 => dice
                .pick(&["180", "-180", "0", "179.9999", "-179.9999"])
                .to_string(),
            1..5 => format!("{}.{}", 10 + dice.below(8), dice.below(10_000)),
            _ => format!("{}.{}", dice.below(360) as i64 - 180, dice.below(10_000)),
        }
    }

    fn latitude(dice: &mut Dice) -> String {
        match dice.below(12) {
            0 => dice
                .pick(&["85.05112878", "-85.05112878", "0", "84.9", "-70.5"])
                .to_string(),
            1..5 => format!("{}.{}", 36 + dice.below(4), dice.below(10_000)),
            _ => format!("{}.{}", dice.below(170) as i64 - 85, dice.below(10_000)),
        }
    }

    fn length(dice: &mut Dice) -> String {
        let most = 1 << dice.below(14);
        let length = dice.below(most);
        format!("{length}.{}", dice.below(100))
    }

    fn unit(dice: &mut Dice) -> &'static str {
        ["m", "km", "KM", "ft", "mi"][dice.below(5) as usize]
    }

    fn member(dice: &mut Dice) -> String {
        format!("m{}", dice.below(300))
    }

    fn options(dice: &mut Dice) -> String {
        let with = *dice.pick(&[
            "",
            "",
            "WITHDIST",
            "WITHCOORD WITHHASH",
            "WITHHASH WITHDIST WITHCOORD",
        ]);
        let count = match dice.below(4) {
            0 => format!("COUNT {}", dice.below(20)),
            1 => format!("COUNT {} ANY", 1 + dice.below(5)),
            _ => String::new(),
        };
        format!("{with} {count} {}", dice.pick(&["ASC", "DESC", ""]))
    }

    fn search(dice: &mut Dice) -> String {
        let (lon, lat, unit, length_of) =
            (longitude(dice), latitude(dice), unit(dice), length(dice));
        let (options, member) = (options(dice), member(dice));
        let from = match dice.below(3) {
            0 => format!("FROMMEMBER {member}"),
            _ => format!("FROMLONLAT {lon} {lat}"),
        };
        let by = match dice.below(2) {
            0 => format!("BYRADIUS {length_of} {unit}"),
            _ => format!("BYBOX {length_of} {} {unit}", length(dice)),
        };
        match dice.below(10) {
            0..5 => format!("GEOSEARCH g {from} {by} {options}"),
            5 => format!("GEORADIUS g {lon} {lat} {length_of} {unit} {options}"),
            6 => format!("GEORADIUSBYMEMBER_RO g {member} {length_of} {unit} {options}"),
            7 => format!(
                "GEOSEARCHSTORE d g {from} {by} {}",
                dice.pick(&["", "STOREDIST", "DESC"])
            ),
            8 => format!("GEORADIUS g {lon} {lat} {length_of} {unit} STORE d"),
            _ => format!("GEORADIUSBYMEMBER g {member} {length_of} {unit} STOREDIST d"),
        }
    }

    /// Members of a reply in which the order of equal distances is nobody's business.
    fn sorted(reply: &Reply) -> String {
        match reply {
            Reply::Array(items) => {
                let mut items: Vec<String> = items.iter().map(show).collect();
                items.sort();
                items.join(" ")
            }
            other => show(other),
        }
    }

    /// Redis does not find what lies beyond a pole, or in a cell that an area near one reaches.
    fn has_more(ours: &Reply, theirs: &Reply) -> bool {
        match (ours, theirs) {
            (Reply::Array(ours), Reply::Array(theirs)) => ours.len() >= theirs.len(),
            (Reply::Integer(ours), Reply::Integer(theirs)) => ours >= theirs,
            _ => false,
        }
    }

    #[test]
    fn positions_and_areas_answer_as_there() {
        let Some(mut redis) = Redis::start("") else {
            return;
        };
        let (mut rig, mut dice) = (Rig::new(), Dice::new(31));
        let mut beyond_a_pole = 0;
        for _ in 0..4_000 {
            let (lon, lat, who) = (longitude(&mut dice), latitude(&mut dice), member(&mut dice));
            redis.agrees_on(&mut rig, &format!("GEOADD g {lon} {lat} {who}"));
            redis.agrees_on(&mut rig, &format!("GEOPOS g {who}"));
            redis.agrees_on(&mut rig, &format!("GEOHASH g {who}"));
            let (other, unit) = (member(&mut dice), unit(&mut dice));
            redis.agrees_on(&mut rig, &format!("GEODIST g {who} {other} {unit}"));
            let line = search(&mut dice);
            let words: Vec<&[u8]> = line.split_whitespace().map(str::as_bytes).collect();
            let (ours, theirs) = (rig.words(&words), redis.words(&words));
            let is_same = match line.contains("COUNT") || line.contains("SC") {
                true => sorted(&ours) == sorted(&theirs),
                false => show(&ours) == show(&theirs),
            };
            if !is_same {
                beyond_a_pole += 1;
                assert!(
                    has_more(&ours, &theirs),
                    "{line}: {ours:?}, theirs {theirs:?}"
                );
                continue;
            }
            if line.contains(" d") && !line.contains("DIST") {
                redis.agrees_on(&mut rig, "ZRANGE d 0 -1 WITHSCORES");
            }
        }
        redis.agrees_on(&mut rig, "ZCARD g");
        assert!(beyond_a_pole < 10, "{beyond_a_pole} of 4,000 differ");
    }

    #[test]
    fn calls_are_refused_as_there() {
        let Some(mut redis) = Redis::start("") else {
            return;
        };
        let mut rig = Rig::new();
        for line in [
            "SET s 1",
            "GEOADD g 1 1 a",
            "GEOADD g NX CH 1 1",
            "GEOADD g 1 1",
            "GEOADD g 1 1 a b",
            "GEOADD g CH CH CH",
            "GEOADD g inf 1 a",
            "GEOADD g 1 86 a",
            "GEOADD s 1 1 a",
            "GEOADD s 1 x a",
            "GEOPOS g",
            "GEOPOS s a",
            "GEOHASH g",
            "GEODIST g a a",
            "GEODIST g a a ly",
            "GEODIST s a a ly",
            "GEODIST g a a m x",
            "GEOSEARCH g BYRADIUS 1 m ASC WITHDIST WITHCOORD",
            "GEOSEARCH g FROMMEMBER a ASC WITHDIST WITHCOORD",
            "GEOSEARCH g FROMMEMBER nope BYRADIUS 1 m",
            "GEOSEARCH none FROMMEMBER nope BYRADIUS 1 m",
            "GEOSEARCH none FROMMEMBER nope BYRADIUS 1 ly",
            "GEOSEARCH none FROMMEMBER nope ASC ASC ASC",
            "GEOSEARCH g FROMMEMBER a FROMLONLAT 1 1 BYRADIUS 1 m",
            "GEOSEARCH g FROMLONLAT 1 1 BYRADIUS 1 m BYBOX 1 1 m",
            "GEOSEARCH g FROMLONLAT 1 1 BYBOX 1 1 m BYRADIUS 1 m",
            "GEOSEARCH g FROMLONLAT 1 1 BYRADIUS x m",
            "GEOSEARCH g FROMLONLAT 1 1 BYRADIUS -1 m",
            "GEOSEARCH g FROMLONLAT 1 1 BYBOX x 1 m",
            "GEOSEARCH g FROMLONLAT 1 1 BYBOX 1 x m",
            "GEOSEARCH g FROMLONLAT 1 1 BYBOX -1 1 m",
            "GEOSEARCH g FROMLONLAT 1 1 BYBOX 1 1",
            "GEOSEARCH g FROMLONLAT 1 1 BYRADIUS inf m",
            "GEOSEARCH g FROMLONLAT 1 1 BYBOX inf inf m",
            "GEOSEARCH g FROMLONLAT 1 1 BYRADIUS 1 m COUNT 0",
            "GEOSEARCH g FROMLONLAT 1 1 BYRADIUS 1 m COUNT x",
            "GEOSEARCH g FROMLONLAT 1 1 BYRADIUS 1 m COUNT",
            "GEOSEARCH g FROMLONLAT 1 1 BYRADIUS 1 m ANY",
            "GEOSEARCH g FROMLONLAT 1 1 BYRADIUS 1 m STOREDIST",
            "GEOSEARCHSTORE d g FROMLONLAT 1 1 BYRADIUS 1 m WITHDIST",
            "GEOSEARCHSTORE d g FROMLONLAT 1 1 BYRADIUS 1 m STORE x",
            "GEOSEARCHSTORE d s FROMLONLAT 1 1 BYRADIUS 1 m",
            "GEOSEARCHSTORE d none FROMLONLAT 1 1 BYRADIUS 1 m",
            "GEORADIUS g 1 1 1 m STORE",
            "GEORADIUS g 1 1 1 m STORE d WITHDIST",
            "GEORADIUS g 1 1 1 m STORE STORE",
            "GEORADIUS g 1 1 1 m STORE a STOREDIST d",
            "GEORADIUS g 1 1 1 m COUNT STORE d",
            "GEORADIUS g 1 1 1 STORE d m",
            "GEORADIUS_RO g 1 1 1 m STORE d",
            "GEORADIUS s 1 x 1 m",
            "GEORADIUS g 1 x 1 m",
            "GEORADIUS g 1 1 x m",
            "GEORADIUS g 1 1 1 ly",
            "GEORADIUS none 1 1 1 ly",
            "GEORADIUS none 1 1 1 m",
            "GEORADIUS none 1 1 1 m STORE d",
            "GEORADIUSBYMEMBER none a x ly",
            "GEORADIUSBYMEMBER none a x ly X",
            "GEORADIUSBYMEMBER none a STORE d STORE d",
            "GEORADIUSBYMEMBER g nope 1 m",
            "GEORADIUSBYMEMBER g a 1 m STOREDIST d",
            "GEORADIUSBYMEMBER g a 1 m WITHHASH",
            "ZADD g -5 x inf y -inf z 1e300 w",
            "GEOPOS g a",
            "GEORADIUS g 1 1 30000 km COUNT 9 ASC WITHDIST",
        ] {
            redis.agrees_on(&mut rig, line);
        }
    }
}

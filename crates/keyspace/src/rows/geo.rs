//! Rows: positions on the earth.

use super::command::{Command, chapter, row};
use super::cost::{Cost, GeoSearch, Visits};
use super::keys::KeySpec;
use super::kinds::{Adds, Group};

#[rustfmt::skip] // One call for each thing that is said would take three times the lines.
pub(super) const ROWS: &[Command] = &chapter(Group::Geo, "@geo", [
    row("geoadd", -5, "write denyoom",
        "key [condition(NX|XX)@6.2.0] [change=CH@6.2.0] longitude_latitude_member(longitude:float \
            latitude:float member)...")
        .since("3.2.0").key("RW update").cost(Cost::arguments(500))
        .says("Adds members with their positions to a geospatial index. Creates the key if it \
            doesn't exist.")
        .complexity("O(log(N)) for each member added, where N is the number of members in the \
            sorted set.")
        .history(&[("6.2.0", "Added the `CH`, `NX` and `XX` options.")]),
    row("geodist", -4, "readonly", "key member1 member2 [unit(M|KM|FT|MI)]")
        .since("3.2.0").key("RO access")
        .says("Returns the distance between two members of a geospatial index."),
    row("geohash", -2, "readonly", "key member...")
        .since("3.2.0").key("RO access").cost(Cost::arguments(300))
        .says("Returns members of a geospatial index as geohash strings.")
        .complexity("O(1) for each member requested."),
    row("geopos", -2, "readonly", "key member...")
        .since("3.2.0").key("RO access").cost(Cost::arguments(300))
        .says("Returns the positions of members of a geospatial index.")
        .complexity("O(1) for each member requested."),
    row("geosearch", -7, "readonly",
        "key from(FROMMEMBER member|FROMLONLAT longitude_latitude(longitude:float latitude:float)) \
            by(circle(BYRADIUS radius:float unit(M|KM|FT|MI))|box(BYBOX width:float height:float \
            unit(M|KM|FT|MI))) [order(ASC|DESC)] [count(COUNT count:int [ANY])] [WITHCOORD] \
            [WITHDIST] [WITHHASH]")
        .since("6.2.0").key("RO access").cost(Cost::visiting(500, Visits::Area(GeoSearch::Words))).slow()
        .says("Returns the members of a geospatial index within a box or a circle.")
        .complexity("O(N+log(M)) where N is the number of members in the cells around the shape \
            and M is the number of members in the index.")
        .history(&[("7.0.0", "Added support for uppercase unit names.")]),
    row("geosearchstore", -8, "write denyoom",
        "destination:key source:key1 from(FROMMEMBER member|FROMLONLAT \
            longitude_latitude(longitude:float latitude:float)) by(circle(BYRADIUS radius:float \
            unit(M|KM|FT|MI))|box(BYBOX width:float height:float unit(M|KM|FT|MI))) \
            [order(ASC|DESC)] [count(COUNT count:int [ANY])] [STOREDIST]")
        .since("6.2.0").keys(KeySpec::two("OW update, RO access"))
        .cost(Cost::visiting(1000, Visits::Area(GeoSearch::WordsAndStore))).slow().adds(Adds::Sources)
        .recorded_as_result()
        .says("Stores the members of a geospatial index within a box or a circle in a key.")
        .complexity("O(N+log(M)) where N is the number of members in the cells around the shape \
            and M is the number of members in the index.")
        .history(&[("7.0.0", "Added support for uppercase unit names.")]),
]);

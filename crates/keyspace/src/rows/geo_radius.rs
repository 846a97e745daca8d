//! Rows: members of a geospatial index around a position.

use super::command::{Command, chapter, row};
use super::cost::{Cost, GeoSearch, Visits};
use super::keys::KeySpec;
use super::kinds::{Adds, Group};

#[rustfmt::skip] // One call for each thing that is said would take three times the lines.
pub(super) const ROWS: &[Command] = &chapter(Group::Geo, "@geo", [
    row("georadius", -6, "write denyoom movablekeys",
        "key longitude:float latitude:float radius:float unit(M|KM|FT|MI) [WITHCOORD] [WITHDIST] \
            [WITHHASH] [count(COUNT count:int [ANY@6.2.0])] [order(ASC|DESC)] [STORE key:key1] \
            [STOREDIST key:key2]")
        .since("3.2.0").keys(KeySpec::one_and_stored(6, "RO access, OW update, OW update"))
        .cost(Cost::visiting(500, Visits::Area(GeoSearch::Around { stores: true }))).slow().adds(Adds::Sources)
        .recorded_as_result()
        .says("Returns or stores the members of a geospatial index within a distance of a point.")
        .complexity("O(N+log(M)) where N is the number of members in the cells around the shape \
            and M is the number of members in the index.")
        .history(&[("6.2.0", "Added the `ANY` option for `COUNT`."), ("7.0.0", "Added support for \
            uppercase unit names.")])
        .replaced_by("6.2.0", "`GEOSEARCH` and `GEOSEARCHSTORE` with the `BYRADIUS` argument"),
    row("georadius_ro", -6, "readonly",
        "key longitude:float latitude:float radius:float unit(M|KM|FT|MI) [WITHCOORD] [WITHDIST] \
            [WITHHASH] [count(COUNT count:int [ANY@6.2.0])] [order(ASC|DESC)]")
        .since("3.2.10").key("RO access").cost(Cost::visiting(500, Visits::Area(GeoSearch::Around { stores: false }))).slow()
        .says("Returns the members of a geospatial index within a distance of a point.")
        .complexity("O(N+log(M)) where N is the number of members in the cells around the shape \
            and M is the number of members in the index.")
        .history(&[("6.2.0", "Added the `ANY` option for `COUNT`.")])
        .replaced_by("6.2.0", "`GEOSEARCH` with the `BYRADIUS` argument"),
    row("georadiusbymember", -5, "write denyoom movablekeys",
        "key member radius:float unit(M|KM|FT|MI) [WITHCOORD] [WITHDIST] [WITHHASH] [count(COUNT \
            count:int [ANY])] [order(ASC|DESC)] [STORE key:key1] [STOREDIST key:key2]")
        .since("3.2.0").keys(KeySpec::one_and_stored(5, "RO access, OW update, OW update"))
        .cost(Cost::visiting(500, Visits::Area(GeoSearch::AroundMember { stores: true }))).slow().adds(Adds::Sources)
        .recorded_as_result()
        .says("Returns or stores the members of a geospatial index within a distance of a member.")
        .complexity("O(N+log(M)) where N is the number of members in the cells around the shape \
            and M is the number of members in the index.")
        .history(&[("7.0.0", "Added support for uppercase unit names.")])
        .replaced_by("6.2.0", "`GEOSEARCH` and `GEOSEARCHSTORE` with the `BYRADIUS` and \
            `FROMMEMBER` arguments"),
    row("georadiusbymember_ro", -5, "readonly",
        "key member radius:float unit(M|KM|FT|MI) [WITHCOORD] [WITHDIST] [WITHHASH] [count(COUNT \
            count:int [ANY])] [order(ASC|DESC)]")
        .since("3.2.10").key("RO access").cost(Cost::visiting(500, Visits::Area(GeoSearch::AroundMember { stores: false }))).slow()
        .says("Returns the members of a geospatial index within a distance of a member.")
        .complexity("O(N+log(M)) where N is the number of members in the cells around the shape \
            and M is the number of members in the index.")
        .replaced_by("6.2.0", "`GEOSEARCH` with the `BYRADIUS` and `FROMMEMBER` arguments"),
]);

//! Rows: members of a geospatial index around a position.

use crate::command::{Adds, Argument, Command, Flags, Group, Handler, KeySpec, KeyUse};
use crate::commands::geo::search;
use crate::long::{Cost, Visits};

const READ: KeyUse = KeyUse {
    flags: &["RO", "access"],
};
const PUT: KeyUse = KeyUse {
    flags: &["OW", "update"],
};

const GEO: Command = Command {
    group: Group::Geo,
    categories: &["@geo"],
    ..Command::BASE
};

pub(super) static ROWS: &[Command] = &[
    Command {
        name: "georadius",
        cost: Cost::visiting(500, Visits::Area),
        summary: "Returns or stores the members of a geospatial index within a distance of a \
                  point.",
        since: "3.2.0",
        complexity: "O(N+log(M)) where N is the number of members in the cells around the shape \
                     and M is the number of members in the index.",
        arity: -6,
        flags: Flags::WRITE.or(Flags::DENYOOM).or(Flags::MOVABLE_KEYS),
        slow: true,
        keys: KeySpec::one_and_stored(6, &[READ, PUT, PUT]),
        adds: Adds::Sources,
        arguments: &[
            Argument::key("key"),
            Argument::double("longitude"),
            Argument::double("latitude"),
            Argument::double("radius"),
            Argument::one_of(
                "unit",
                &[
                    Argument::word("m", "M"),
                    Argument::word("km", "KM"),
                    Argument::word("ft", "FT"),
                    Argument::word("mi", "MI"),
                ],
            ),
            Argument::word("withcoord", "WITHCOORD").optional(),
            Argument::word("withdist", "WITHDIST").optional(),
            Argument::word("withhash", "WITHHASH").optional(),
            Argument::block(
                "count",
                &[
                    Argument::integer("count").after("COUNT"),
                    Argument::word("any", "ANY").since("6.2.0").optional(),
                ],
            )
            .optional(),
            Argument::one_of(
                "order",
                &[Argument::word("asc", "ASC"), Argument::word("desc", "DESC")],
            )
            .optional(),
            Argument::key_of("key", 1).after("STORE").optional(),
            Argument::key_of("key", 2).after("STOREDIST").optional(),
        ],
        history: &[
            ("6.2.0", "Added the `ANY` option for `COUNT`."),
            ("7.0.0", "Added support for uppercase unit names."),
        ],
        replaced_by: Some((
            "6.2.0",
            "`GEOSEARCH` and `GEOSEARCHSTORE` with the `BYRADIUS` argument",
        )),
        handler: Handler::Keys(search::georadius),
        ..GEO
    },
    Command {
        name: "georadius_ro",
        cost: Cost::visiting(500, Visits::Area),
        summary: "Returns the members of a geospatial index within a distance of a point.",
        since: "3.2.10",
        complexity: "O(N+log(M)) where N is the number of members in the cells around the shape \
                     and M is the number of members in the index.",
        arity: -6,
        flags: Flags::READONLY,
        slow: true,
        keys: KeySpec::one(1, &[READ]),
        arguments: &[
            Argument::key("key"),
            Argument::double("longitude"),
            Argument::double("latitude"),
            Argument::double("radius"),
            Argument::one_of(
                "unit",
                &[
                    Argument::word("m", "M"),
                    Argument::word("km", "KM"),
                    Argument::word("ft", "FT"),
                    Argument::word("mi", "MI"),
                ],
            ),
            Argument::word("withcoord", "WITHCOORD").optional(),
            Argument::word("withdist", "WITHDIST").optional(),
            Argument::word("withhash", "WITHHASH").optional(),
            Argument::block(
                "count",
                &[
                    Argument::integer("count").after("COUNT"),
                    Argument::word("any", "ANY").since("6.2.0").optional(),
                ],
            )
            .optional(),
            Argument::one_of(
                "order",
                &[Argument::word("asc", "ASC"), Argument::word("desc", "DESC")],
            )
            .optional(),
        ],
        history: &[("6.2.0", "Added the `ANY` option for `COUNT`.")],
        replaced_by: Some(("6.2.0", "`GEOSEARCH` with the `BYRADIUS` argument")),
        handler: Handler::Keys(search::georadius_ro),
        ..GEO
    },
    Command {
        name: "georadiusbymember",
        cost: Cost::visiting(500, Visits::Area),
        summary: "Returns or stores the members of a geospatial index within a distance of a \
                  member.",
        since: "3.2.0",
        complexity: "O(N+log(M)) where N is the number of members in the cells around the shape \
                     and M is the number of members in the index.",
        arity: -5,
        flags: Flags::WRITE.or(Flags::DENYOOM).or(Flags::MOVABLE_KEYS),
        slow: true,
        keys: KeySpec::one_and_stored(5, &[READ, PUT, PUT]),
        adds: Adds::Sources,
        arguments: &[
            Argument::key("key"),
            Argument::string("member"),
            Argument::double("radius"),
            Argument::one_of(
                "unit",
                &[
                    Argument::word("m", "M"),
                    Argument::word("km", "KM"),
                    Argument::word("ft", "FT"),
                    Argument::word("mi", "MI"),
                ],
            ),
            Argument::word("withcoord", "WITHCOORD").optional(),
            Argument::word("withdist", "WITHDIST").optional(),
            Argument::word("withhash", "WITHHASH").optional(),
            Argument::block(
                "count",
                &[
                    Argument::integer("count").after("COUNT"),
                    Argument::word("any", "ANY").optional(),
                ],
            )
            .optional(),
            Argument::one_of(
                "order",
                &[Argument::word("asc", "ASC"), Argument::word("desc", "DESC")],
            )
            .optional(),
            Argument::key_of("key", 1).after("STORE").optional(),
            Argument::key_of("key", 2).after("STOREDIST").optional(),
        ],
        history: &[("7.0.0", "Added support for uppercase unit names.")],
        replaced_by: Some((
            "6.2.0",
            "`GEOSEARCH` and `GEOSEARCHSTORE` with the `BYRADIUS` and `FROMMEMBER` arguments",
        )),
        handler: Handler::Keys(search::georadiusbymember),
        ..GEO
    },
    Command {
        name: "georadiusbymember_ro",
        cost: Cost::visiting(500, Visits::Area),
        summary: "Returns the members of a geospatial index within a distance of a member.",
        since: "3.2.10",
        complexity: "O(N+log(M)) where N is the number of members in the cells around the shape \
                     and M is the number of members in the index.",
        arity: -5,
        flags: Flags::READONLY,
        slow: true,
        keys: KeySpec::one(1, &[READ]),
        arguments: &[
            Argument::key("key"),
            Argument::string("member"),
            Argument::double("radius"),
            Argument::one_of(
                "unit",
                &[
                    Argument::word("m", "M"),
                    Argument::word("km", "KM"),
                    Argument::word("ft", "FT"),
                    Argument::word("mi", "MI"),
                ],
            ),
            Argument::word("withcoord", "WITHCOORD").optional(),
            Argument::word("withdist", "WITHDIST").optional(),
            Argument::word("withhash", "WITHHASH").optional(),
            Argument::block(
                "count",
                &[
                    Argument::integer("count").after("COUNT"),
                    Argument::word("any", "ANY").optional(),
                ],
            )
            .optional(),
            Argument::one_of(
                "order",
                &[Argument::word("asc", "ASC"), Argument::word("desc", "DESC")],
            )
            .optional(),
        ],
        replaced_by: Some((
            "6.2.0",
            "`GEOSEARCH` with the `BYRADIUS` and `FROMMEMBER` arguments",
        )),
        handler: Handler::Keys(search::georadiusbymember_ro),
        ..GEO
    },
];

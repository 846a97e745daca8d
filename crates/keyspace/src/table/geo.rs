//! Rows: positions on the earth.

use crate::command::{Adds, Argument, Command, Flags, Group, Handler, KeySpec, KeyUse};
use crate::commands::geo::{place, search};
use crate::long::{Cost, Visits};

const READ: KeyUse = KeyUse {
    flags: &["RO", "access"],
};
const UPDATE: KeyUse = KeyUse {
    flags: &["RW", "update"],
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
        name: "geoadd",
        cost: Cost::arguments(500),
        summary: "Adds members with their positions to a geospatial index. Creates the key if it \
                  doesn't exist.",
        since: "3.2.0",
        complexity: "O(log(N)) for each member added, where N is the number of members in the \
                     sorted set.",
        arity: -5,
        flags: Flags::WRITE.or(Flags::DENYOOM),
        keys: KeySpec::one(1, &[UPDATE]),
        arguments: &[
            Argument::key("key"),
            Argument::one_of(
                "condition",
                &[Argument::word("nx", "NX"), Argument::word("xx", "XX")],
            )
            .since("6.2.0")
            .optional(),
            Argument::word("change", "CH").since("6.2.0").optional(),
            Argument::block(
                "longitude_latitude_member",
                &[
                    Argument::double("longitude"),
                    Argument::double("latitude"),
                    Argument::string("member"),
                ],
            )
            .multiple(),
        ],
        history: &[("6.2.0", "Added the `CH`, `NX` and `XX` options.")],
        handler: Handler::Keys(place::geoadd),
        ..GEO
    },
    Command {
        name: "geodist",
        summary: "Returns the distance between two members of a geospatial index.",
        since: "3.2.0",
        arity: -4,
        flags: Flags::READONLY,
        keys: KeySpec::one(1, &[READ]),
        arguments: &[
            Argument::key("key"),
            Argument::string("member1"),
            Argument::string("member2"),
            Argument::one_of(
                "unit",
                &[
                    Argument::word("m", "M"),
                    Argument::word("km", "KM"),
                    Argument::word("ft", "FT"),
                    Argument::word("mi", "MI"),
                ],
            )
            .optional(),
        ],
        handler: Handler::Keys(place::geodist),
        ..GEO
    },
    Command {
        name: "geohash",
        cost: Cost::arguments(300),
        summary: "Returns members of a geospatial index as geohash strings.",
        since: "3.2.0",
        complexity: "O(1) for each member requested.",
        arity: -2,
        flags: Flags::READONLY,
        keys: KeySpec::one(1, &[READ]),
        arguments: &[Argument::key("key"), Argument::string("member").multiple()],
        handler: Handler::Keys(place::geohash),
        ..GEO
    },
    Command {
        name: "geopos",
        cost: Cost::arguments(300),
        summary: "Returns the positions of members of a geospatial index.",
        since: "3.2.0",
        complexity: "O(1) for each member requested.",
        arity: -2,
        flags: Flags::READONLY,
        keys: KeySpec::one(1, &[READ]),
        arguments: &[Argument::key("key"), Argument::string("member").multiple()],
        handler: Handler::Keys(place::geopos),
        ..GEO
    },
    Command {
        name: "geosearch",
        cost: Cost::visiting(500, Visits::Area),
        summary: "Returns the members of a geospatial index within a box or a circle.",
        since: "6.2.0",
        complexity: "O(N+log(M)) where N is the number of members in the cells around the shape \
                     and M is the number of members in the index.",
        arity: -7,
        flags: Flags::READONLY,
        slow: true,
        keys: KeySpec::one(1, &[READ]),
        arguments: &[
            Argument::key("key"),
            Argument::one_of(
                "from",
                &[
                    Argument::string("member").after("FROMMEMBER"),
                    Argument::block(
                        "longitude_latitude",
                        &[Argument::double("longitude"), Argument::double("latitude")],
                    )
                    .after("FROMLONLAT"),
                ],
            ),
            Argument::one_of(
                "by",
                &[
                    Argument::block(
                        "circle",
                        &[
                            Argument::double("radius").after("BYRADIUS"),
                            Argument::one_of(
                                "unit",
                                &[
                                    Argument::word("m", "M"),
                                    Argument::word("km", "KM"),
                                    Argument::word("ft", "FT"),
                                    Argument::word("mi", "MI"),
                                ],
                            ),
                        ],
                    ),
                    Argument::block(
                        "box",
                        &[
                            Argument::double("width").after("BYBOX"),
                            Argument::double("height"),
                            Argument::one_of(
                                "unit",
                                &[
                                    Argument::word("m", "M"),
                                    Argument::word("km", "KM"),
                                    Argument::word("ft", "FT"),
                                    Argument::word("mi", "MI"),
                                ],
                            ),
                        ],
                    ),
                ],
            ),
            Argument::one_of(
                "order",
                &[Argument::word("asc", "ASC"), Argument::word("desc", "DESC")],
            )
            .optional(),
            Argument::block(
                "count",
                &[
                    Argument::integer("count").after("COUNT"),
                    Argument::word("any", "ANY").optional(),
                ],
            )
            .optional(),
            Argument::word("withcoord", "WITHCOORD").optional(),
            Argument::word("withdist", "WITHDIST").optional(),
            Argument::word("withhash", "WITHHASH").optional(),
        ],
        history: &[("7.0.0", "Added support for uppercase unit names.")],
        handler: Handler::Keys(search::geosearch),
        ..GEO
    },
    Command {
        name: "geosearchstore",
        cost: Cost::visiting(1_000, Visits::Area),
        summary: "Stores the members of a geospatial index within a box or a circle in a key.",
        since: "6.2.0",
        complexity: "O(N+log(M)) where N is the number of members in the cells around the shape \
                     and M is the number of members in the index.",
        arity: -8,
        flags: Flags::WRITE.or(Flags::DENYOOM),
        slow: true,
        keys: KeySpec::two(&[PUT, READ]),
        adds: Adds::Sources,
        arguments: &[
            Argument::key("destination"),
            Argument::key_of("source", 1),
            Argument::one_of(
                "from",
                &[
                    Argument::string("member").after("FROMMEMBER"),
                    Argument::block(
                        "longitude_latitude",
                        &[Argument::double("longitude"), Argument::double("latitude")],
                    )
                    .after("FROMLONLAT"),
                ],
            ),
            Argument::one_of(
                "by",
                &[
                    Argument::block(
                        "circle",
                        &[
                            Argument::double("radius").after("BYRADIUS"),
                            Argument::one_of(
                                "unit",
                                &[
                                    Argument::word("m", "M"),
                                    Argument::word("km", "KM"),
                                    Argument::word("ft", "FT"),
                                    Argument::word("mi", "MI"),
                                ],
                            ),
                        ],
                    ),
                    Argument::block(
                        "box",
                        &[
                            Argument::double("width").after("BYBOX"),
                            Argument::double("height"),
                            Argument::one_of(
                                "unit",
                                &[
                                    Argument::word("m", "M"),
                                    Argument::word("km", "KM"),
                                    Argument::word("ft", "FT"),
                                    Argument::word("mi", "MI"),
                                ],
                            ),
                        ],
                    ),
                ],
            ),
            Argument::one_of(
                "order",
                &[Argument::word("asc", "ASC"), Argument::word("desc", "DESC")],
            )
            .optional(),
            Argument::block(
                "count",
                &[
                    Argument::integer("count").after("COUNT"),
                    Argument::word("any", "ANY").optional(),
                ],
            )
            .optional(),
            Argument::word("storedist", "STOREDIST").optional(),
        ],
        history: &[("7.0.0", "Added support for uppercase unit names.")],
        handler: Handler::Keys(search::geosearchstore),
        ..GEO
    },
];

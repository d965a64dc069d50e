//! Offload features of a real interface.

use mpt_io::ethtool::{Error, features, set_feature};
use mpt_io::netlink::Netlink;

use crate::{Outcome, Test};

pub(crate) const TESTS: &[Test] = &[
    ("ethtool::features_can_be_switched", switched),
    ("ethtool::errors_tell_unknown_from_fixed", errors),
];

fn switched() -> Outcome {
    Netlink::open().unwrap().add_veth("near", "far", None).unwrap();
    let active = |name: &str| {
        let feature = features("near").unwrap().into_iter().find(|feature| feature.name == name);
        let feature = feature.unwrap();
        assert!(feature.changeable, "{feature:?}");
        feature.active
    };
    for name in ["tx-tcp-segmentation", "tx-udp-segmentation", "rx-gro"] {
        let others = features("near").unwrap();
        for on in [false, true] {
            set_feature("near", name, on).unwrap();
            assert_eq!(active(name), on, "{name}");
        }
        set_feature("near", name, others.iter().any(|f| f.name == name && f.active)).unwrap();
        assert_eq!(features("near").unwrap(), others, "{name} alone was touched");
    }
    Ok(())
}

fn errors() -> Outcome {
    let unknown = set_feature("lo", "tx-telepathy", true).unwrap_err();
    assert!(matches!(unknown, Error::Unknown { .. }), "{unknown:?}");
    assert!(unknown.to_string().contains("'tx-telepathy'"), "{unknown}");
    let fixed = features("lo").unwrap().into_iter().find(|feature| !feature.changeable).unwrap();
    let fixed = set_feature("lo", &fixed.name, !fixed.active).unwrap_err();
    assert!(matches!(fixed, Error::Fixed { .. }), "{fixed:?}");
    assert!(matches!(features("absent"), Err(Error::Refused { .. })));
    assert!(matches!(features("a b"), Err(Error::Name(_))));
    Ok(())
}

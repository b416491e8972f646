//! Places and orders of other launchers' `--bind-to` and `--map-by` in our words. Pure.
//!
//! Open MPI writes `PLACE:MODIFIER:...` and `ppr:N:PLACE`, N ranks on each place; MPICH `PLACE:N`, so many
//! places for each rank.

/// Modifiers that change nothing where every rank runs on one host and cores may be shared.
const HARMLESS: &[&str] = &[
    "1",
    "pe=1",
    "overload-allowed",
    "no-overload",
    "if-supported",
    "oversubscribe",
    "nooversubscribe",
    "span",
    "report",
    "display",
    "inherit",
    "noinherit",
    "hwtcpus",
    "corecpus",
];

/// Places with the nearest ones of ours.
const NEAREST: &[(&str, &str)] = &[
    ("none", "none"),
    ("slot", "slot"),
    ("node", "node"),
    ("core", "core"),
    ("hwthread", "hwthread"),
    ("socket", "socket"),
    ("package", "package"),
    ("numa", "socket"),
    ("l3cache", "socket"),
    ("l2cache", "core"),
    ("l1cache", "core"),
];

/// What the `value` of `option`, `--bind-to` or `--map-by`, is taken for, as a word of ours. `None` if it
/// is one of ours, or unknown.
///
/// # Errors
/// That each rank was to have several places, which cannot be done.
pub(super) fn taken(option: &str, value: &str) -> Result<Option<String>, String> {
    let lower = value.to_ascii_lowercase();
    let fields: Vec<&str> = lower.split([':', ',']).collect();
    let (ranks, place, modifiers) = match fields[..] {
        ["ppr", ranks, place, ref modifiers @ ..] => (Some(ranks), place, modifiers),
        [place, ref modifiers @ ..] => (None, place, modifiers),
        [] => return Ok(None),
    };
    let Some((_, nearest)) = NEAREST.iter().find(|(known, _)| place == *known) else {
        return Ok(None);
    };
    let is_harmless = |modifier: &&str| HARMLESS.contains(modifier);
    if let Some(modifier) = modifiers.iter().find(|modifier| !is_harmless(modifier)) {
        return match modifier.trim_start_matches("pe=").parse::<usize>() {
            Ok(_) => Err(format!(
                "{option} {value}: a rank cannot be bound to several cores; bind it to socket, or to none"
            )),
            Err(_) => Ok(None),
        };
    }
    if let (Some(ranks), "node") = (ranks, place) {
        return Ok(Some(format!("--soft={ranks}")));
    }
    Ok((*nearest != value).then(|| format!("{option}={nearest}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_ours_or_unknown_is_left_alone() {
        for value in
            ["core", "none", "socket", "node", "slot", "board", "", "core:odd", "ppr", "user:0,1"]
        {
            assert_eq!(taken("--map-by", value), Ok(None), "{value}");
        }
    }

    #[test]
    fn the_nearest_place_is_taken() {
        for (value, ours) in [
            ("core:overload-allowed", "--bind-to=core"),
            ("CORE", "--bind-to=core"),
            ("core:1", "--bind-to=core"),
            ("numa", "--bind-to=socket"),
            ("L3cache:if-supported", "--bind-to=socket"),
            ("l2cache", "--bind-to=core"),
        ] {
            assert_eq!(taken("--bind-to", value), Ok(Some(ours.to_owned())), "{value}");
        }
        for (value, ours) in [
            ("ppr:2:node", "--soft=2"),
            ("ppr:2:node:pe=1", "--soft=2"),
            ("ppr:4:socket", "--map-by=socket"),
            ("ppr:1:core", "--map-by=core"),
            ("node:PE=1", "--map-by=node"),
            ("slot:oversubscribe,span", "--map-by=slot"),
        ] {
            assert_eq!(taken("--map-by", value), Ok(Some(ours.to_owned())), "{value}");
        }
    }

    #[test]
    fn several_cores_for_a_rank_are_refused() {
        for value in ["node:PE=4", "ppr:2:node:pe=2", "core:2", "slot:span:PE=12"] {
            let text = taken("--map-by", value).expect_err(value);
            assert!(text.contains(value) && text.contains("several cores"), "{text}");
        }
    }
}

//! Catalogs, packages, channels and bundles, and the images that they name.

use super::{Checked, Objection, field, known, object_name, unique};
use crate::scenario::yaml::Path;
use crate::scenario::{Bundle, Package, Scenario};

/// The install modes that OLM knows.
const MODES: [&str; 4] = ["OwnNamespace", "SingleNamespace", "MultiNamespace", "AllNamespaces"];

pub(super) fn images(scenario: &Scenario) -> Checked {
    for (name, image) in &scenario.images {
        let path = field("images").key(name.as_str());
        if image.reference.is_empty() {
            return Err(Objection::new(path.key("reference"), "the image has no reference"));
        }
        if let Some(text) = image.pull.objection() {
            return Err(Objection::new(path.key("pull"), text));
        }
    }
    Ok(())
}

pub(super) fn catalogs(scenario: &Scenario) -> Checked {
    let list = field("catalogs");
    for (n, catalog) in scenario.catalogs.iter().enumerate() {
        let path = list.place(n);
        object_name(&path, &catalog.name)?;
        let packages = path.key("packages");
        for (m, found) in catalog.packages.iter().enumerate() {
            package(scenario, &packages.place(m), found)?;
        }
        unique(&packages, "name", catalog.packages.iter().map(|package| package.name.as_str()))?;
    }
    unique(&list, "name", scenario.catalogs.iter().map(|catalog| catalog.name.as_str()))
}

fn package(scenario: &Scenario, path: &Path, package: &Package) -> Checked {
    object_name(path, &package.name)?;
    for (channel, csvs) in &package.channels {
        let path = path.key("channels").key(channel.as_str());
        if csvs.is_empty() {
            return Err(Objection::new(path, "the channel has no version"));
        }
        for (n, csv) in csvs.iter().enumerate() {
            if !package.bundles.iter().any(|bundle| &bundle.csv == csv) {
                let names = known(package.bundles.iter().map(|bundle| bundle.csv.as_str()));
                let text = format!("`{csv}` is not among the package's bundles; {names}");
                return Err(Objection::new(path.place(n), text));
            }
        }
    }
    if !package.channels.contains_key(&package.default_channel) {
        let names = known(package.channels.keys().map(String::as_str));
        let text = format!("`{}` is no channel of the package; {names}", package.default_channel);
        return Err(Objection::new(path.key("defaultChannel"), text));
    }
    let list = path.key("bundles");
    for (n, found) in package.bundles.iter().enumerate() {
        bundle(scenario, &list.place(n), found)?;
    }
    unique(&list, "csv", package.bundles.iter().map(|bundle| bundle.csv.as_str()))?;
    replaced(&list, &package.bundles)
}

fn bundle(scenario: &Scenario, path: &Path, bundle: &Bundle) -> Checked {
    for (key, value) in [("csv", &bundle.csv), ("version", &bundle.version), ("deployment", &bundle.deployment)] {
        if value.is_empty() {
            return Err(Objection::new(path.key(key), "a bundle has to say it"));
        }
    }
    if !scenario.images.contains_key(&bundle.image) {
        let names = known(scenario.images.keys().map(String::as_str));
        let text = format!("`{}` is not among images; {names}", bundle.image);
        return Err(Objection::new(path.key("image"), text).see(field("images").key(bundle.image.as_str())));
    }
    if bundle.install_modes.is_empty() {
        return Err(Objection::new(path.key("installModes"), format!("none is supported; {}", known(MODES))));
    }
    for (n, mode) in bundle.install_modes.iter().enumerate() {
        if !MODES.contains(&mode.as_str()) {
            let text = format!("`{mode}` is no install mode; {}", known(MODES));
            return Err(Objection::new(path.key("installModes").place(n), text));
        }
    }
    for (n, owned) in bundle.owned.iter().enumerate() {
        let path = path.key("owned").place(n);
        let parts =
            [("group", &owned.group), ("version", &owned.version), ("kind", &owned.kind), ("plural", &owned.plural)];
        if let Some((key, _)) = parts.into_iter().find(|(_, part)| part.is_empty()) {
            return Err(Objection::new(path.key(key), "a kind has to say it"));
        }
    }
    Ok(())
}

/// No version may replace itself, over however many others. What is replaced need not be in the catalog.
fn replaced(list: &Path, bundles: &[Bundle]) -> Checked {
    for (n, start) in bundles.iter().enumerate() {
        let mut at = start;
        for _ in bundles {
            match bundles.iter().find(|bundle| bundle.csv == at.replaces) {
                Some(next) => at = next,
                None => break,
            }
            if at.csv == start.csv {
                let text = format!("`{}` replaces itself", start.csv);
                return Err(Objection::new(list.place(n).key("replaces"), text));
            }
        }
    }
    Ok(())
}

//! Which proxy, if any.
//!
//! The library compares NO_PROXY with the proxy's own address; here it is compared with the server's, as everybody
//! else does.

use std::collections::BTreeMap;
use std::net::IpAddr;

/// The proxy to go through, as it was given.
pub(super) fn choose(
    configured: Option<&str>,
    server: &http::Uri,
    environment: &BTreeMap<String, String>,
) -> Option<String> {
    if let Some(proxy) = configured.filter(|proxy| !proxy.is_empty()) {
        return Some(proxy.to_owned());
    }
    let variable =
        |names: [&str; 2]| names.iter().find_map(|name| environment.get(*name).filter(|value| !value.is_empty()));
    let names =
        if server.scheme_str() == Some("http") { ["HTTP_PROXY", "http_proxy"] } else { ["HTTPS_PROXY", "https_proxy"] };
    let proxy = variable(names)?;
    let host = server.host().unwrap_or_default().trim_matches(['[', ']']);
    let port = server.port_u16().unwrap_or(if server.scheme_str() == Some("http") { 80 } else { 443 });
    let is_local = host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    let none = variable(["NO_PROXY", "no_proxy"]).map_or("", String::as_str);
    if is_local || is_excepted(host, port, none) {
        return None;
    }
    if proxy.contains("://") { Some(proxy.clone()) } else { Some(format!("http://{proxy}")) }
}

/// Whether a list of exceptions names a host: by name, suffix, address or network, each with or without a port.
fn is_excepted(host: &str, port: u16, exceptions: &str) -> bool {
    let entries = exceptions.split([',', ' ']).map(str::trim);
    entries.filter(|entry| !entry.is_empty()).any(|entry| {
        if entry == "*" {
            return true;
        }
        if let Ok(address) = host.parse::<IpAddr>() {
            if let Some((network, bits)) = entry.split_once('/') {
                return in_network(address, network, bits);
            }
            if entry.trim_matches(['[', ']']).parse() == Ok(address) {
                return true;
            }
        }
        let (name, only) = match entry.rsplit_once(':') {
            Some((name, only)) if only.parse::<u16>().is_ok() => (name, only.parse().ok()),
            _ => (entry, None),
        };
        if only.is_some_and(|only: u16| only != port) {
            return false;
        }
        let (name, host) = (name.to_ascii_lowercase(), host.to_ascii_lowercase());
        let suffix = name.strip_prefix('*').unwrap_or(&name);
        match suffix.strip_prefix('.') {
            Some(domain) => host.ends_with(&format!(".{domain}")),
            None => host == suffix || host.ends_with(&format!(".{suffix}")),
        }
    })
}

fn in_network(address: IpAddr, network: &str, bits: &str) -> bool {
    let (Ok(network), Ok(bits)) = (network.parse::<IpAddr>(), bits.parse::<u32>()) else {
        return false;
    };
    match (address, network) {
        (IpAddr::V4(a), IpAddr::V4(n)) if bits <= 32 => {
            let mask = u32::MAX.checked_shl(32 - bits).unwrap_or(0);
            a.to_bits() & mask == n.to_bits() & mask
        }
        (IpAddr::V6(a), IpAddr::V6(n)) if bits <= 128 => {
            let mask = u128::MAX.checked_shl(128 - bits).unwrap_or(0);
            a.to_bits() & mask == n.to_bits() & mask
        }
        _ => false,
    }
}

/// A URL as it may be shown: without user and password.
pub(super) fn shown(url: &str) -> String {
    match (url.split_once("://"), url.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, host))) => format!("{scheme}://{host}"),
        (None, Some((_, host))) => host.to_owned(),
        _ => url.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn through(configured: Option<&str>, server: &str, variables: &[(&str, &str)]) -> Option<String> {
        let environment = variables.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        choose(configured, &server.parse().unwrap(), &environment)
    }

    #[test]
    fn the_kubeconfigs_proxy_wins_over_the_environments() {
        let variables = [("HTTPS_PROXY", "http://env.example.test:3128"), ("NO_PROXY", "*")];
        let server = "https://api.example.test:6443";
        assert_eq!(
            through(Some("socks5://127.0.0.1:1080"), server, &variables).as_deref(),
            Some("socks5://127.0.0.1:1080")
        );
    }

    #[test]
    fn exceptions_are_about_the_server_by_suffix_and_network() {
        let proxy = ("HTTPS_PROXY", "http://proxy.example.test:3128");
        let none = ("NO_PROXY", ".cluster.example.test, 10.0.0.0/8,");
        let ask = |server| through(None, server, &[proxy, none]);
        assert_eq!(ask("https://api.cluster.example.test:6443"), None);
        assert_eq!(ask("https://10.2.3.4:6443"), None);
        assert_eq!(ask("https://127.0.0.1:6443"), None);
        assert!(ask("https://11.2.3.4:6443").is_some());
        assert!(ask("https://api.other.example.test:6443").is_some());
    }

    #[test]
    fn a_password_is_not_shown() {
        assert_eq!(shown("http://me:secret@proxy:3128"), "http://proxy:3128");
        assert_eq!(shown("http://proxy:3128"), "http://proxy:3128");
    }
}

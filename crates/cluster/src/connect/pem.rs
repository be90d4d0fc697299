//! Certificates in PEM form.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// The certificates of a PEM text, in binary form. Anything between and around them is ignored.
pub(super) fn certificates(text: &[u8]) -> Result<Vec<Vec<u8>>, String> {
    const BEGIN: &str = "-----BEGIN CERTIFICATE-----";
    const END: &str = "-----END CERTIFICATE-----";
    let text = std::str::from_utf8(text).map_err(|_| "it is no text".to_owned())?;
    let mut found = Vec::new();
    for part in text.split(BEGIN).skip(1) {
        let (body, _) = part.split_once(END).ok_or_else(|| "a certificate in it has no end".to_owned())?;
        let body: String = body.split_whitespace().collect();
        let bytes = STANDARD.decode(body).map_err(|error| format!("a certificate in it is damaged: {error}"))?;
        found.push(bytes);
    }
    if found.is_empty() {
        return Err("it has no certificate".to_owned());
    }
    Ok(found)
}

/// Base64 with line breaks, as kubeconfigs carry it.
pub(super) fn decode(data: &str) -> Result<Vec<u8>, String> {
    let data: String = data.split_whitespace().collect();
    STANDARD.decode(data).map_err(|error| format!("it is not base64: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bundle_gives_each_certificate() {
        let text = "subject=x\n-----BEGIN CERTIFICATE-----\naGVs\nbG8K\n-----END CERTIFICATE-----\n\
                    -----BEGIN CERTIFICATE-----\naGVsbG8K\n-----END CERTIFICATE-----\n";
        assert_eq!(certificates(text.as_bytes()), Ok(vec![b"hello\n".to_vec(); 2]));
        assert!(certificates(b"nothing").is_err());
        assert!(certificates(b"-----BEGIN CERTIFICATE-----\naGVs").is_err());
    }
}

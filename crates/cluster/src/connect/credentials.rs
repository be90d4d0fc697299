//! What is wrong with credentials, without ever showing them.

use kube::client::AuthError;

/// Says why credentials could not be had. A plugin's output may hold a token, so only its complaints are shown.
pub(crate) fn credentials_trouble(error: &AuthError, plugin: Option<&str>) -> String {
    let plugin = plugin.unwrap_or("the credential plugin");
    match error {
        AuthError::AuthExecRun { out, .. } => {
            let complaint = String::from_utf8_lossy(&out.stderr);
            let complaint: Vec<&str> = complaint.trim().lines().rev().take(3).collect();
            let complaint: Vec<&str> = complaint.into_iter().rev().collect();
            format!("{plugin} failed ({}): {}", out.status, complaint.join("; "))
        }
        AuthError::AuthExecStart(error) => format!("{plugin} cannot be started: {error}"),
        AuthError::AuthExecParse(_) => format!("{plugin} did not answer with an ExecCredential"),
        AuthError::ExecPluginFailed => format!("{plugin} answered without credentials"),
        AuthError::ReadTokenFile(error, path) => {
            format!("token file {} cannot be read: {error}", path.display())
        }
        AuthError::UnrefreshableTokenResponse => format!("{plugin} gave no new token"),
        AuthError::MissingCommand => "the kubeconfig's plugin has no command".to_owned(),
        _ => "the kubeconfig's credentials cannot be used".to_owned(),
    }
}

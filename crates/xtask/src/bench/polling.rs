//! What the predecessor's polling would have asked of the API for the same run.

use serde_json::Value;

/// Seconds between two looks, by wait (the predecessor's catalogue: 6.1, 7.3, 8.1, 8.6, 8.7).
const INTERVALS: [(&str, f64); 6] =
    [("machines", 10.0), ("nodes", 10.0), ("gpu-label", 30.0), ("csv", 30.0), ("cluster-policy", 60.0), ("burn", 30.0)];

/// Processes that ask the API once each, besides the loops, with everything ready at once (the predecessor's
/// catalogue, 10.4: has_labels, NFD, has_gpu_nodes, set_scale, GPU operator, wait_deployment, gpu_burn, capture).
const ONCE: u64 = 4 + 13 + 4 + 8 + 22 + 40 + 19 + 26;

/// Requests for the waits of this run, each as long as it took here, plus what is asked once.
pub(super) fn requests(summary: &Value) -> u64 {
    let steps = summary["steps"].as_array().map(Vec::as_slice).unwrap_or_default();
    let looks = steps.iter().filter_map(|step| {
        let (start, end) = (step["start_s"].as_f64()?, step["end_s"].as_f64()?);
        let name = step["wait"].as_str()?;
        let (_, interval) = INTERVALS.iter().find(|(wait, _)| *wait == name)?;
        Some(((end - start) / interval).ceil() as u64)
    });
    ONCE + looks.sum::<u64>()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_wait_costs_one_look_per_interval() {
        let summary = json!({"steps": [
            {"id": "a", "wait": "machines", "start_s": 10.0, "end_s": 315.0},
            {"id": "b", "wait": "csv", "start_s": 0.0, "end_s": 1.0},
            {"id": "c", "start_s": 0.0, "end_s": 900.0},
        ]});
        assert_eq!(requests(&summary), ONCE + 31 + 1);
    }
}

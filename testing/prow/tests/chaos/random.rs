//! Each kind of fault alone, and up to four of them at once, over many seeds.

use crate::dice::{Dice, KINDS};
use crate::support::job;

/// Runs the seeds one after the other; tells all that went wrong at once.
async fn seeds(from: u64, to: u64) {
    let undisturbed = job(&[]).await;
    let (mut wrong, mut most, mut hits) = (Vec::new(), 0.0_f64, 0);
    for seed in from..to {
        let faults = Dice::new(seed).faults();
        let ended = job(&faults).await;
        let differs = ended.differs(&undisturbed);
        if !differs.is_empty() {
            wrong.push(format!("seed {seed}: {faults:#?}\n{}", differs.join("\n")));
        }
        most = most.max(ended.requests as f64 / undisturbed.requests as f64);
        hits += ended.hits;
    }
    assert!(wrong.is_empty(), "{} of {} seeds:\n{}", wrong.len(), to - from, wrong.join("\n"));
    assert!(hits > 10 * (to - from), "the faults met {hits} requests");
    eprintln!("seeds {from} to {to}: {hits} hits, at most {most:.2} times the requests");
}

macro_rules! seeds {
    ($($name:ident $from:literal $to:literal),* $(,)?) => {
        $(
            #[tokio::test(start_paused = true)]
            async fn $name() {
                seeds($from, $to).await;
            }
        )*
    };
}

seeds! {
    faults_at_random_change_nothing_1 0 25,
    faults_at_random_change_nothing_2 25 50,
    faults_at_random_change_nothing_3 50 75,
    faults_at_random_change_nothing_4 75 100,
    faults_at_random_change_nothing_5 100 125,
    faults_at_random_change_nothing_6 125 150,
    faults_at_random_change_nothing_7 150 175,
    faults_at_random_change_nothing_8 175 200,
}

#[tokio::test(start_paused = true)]
async fn each_kind_alone_changes_nothing() {
    let undisturbed = job(&[]).await;
    let mut wrong = Vec::new();
    for kind in KINDS {
        for seed in 1000..1002 {
            let fault = Dice::new(seed).fault(*kind);
            let ended = job(std::slice::from_ref(&fault)).await;
            let differs = ended.differs(&undisturbed);
            if !differs.is_empty() {
                wrong.push(format!("{fault:#?}\n{}", differs.join("\n")));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

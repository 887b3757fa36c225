//! Sharing a list of jobs among threads.

use std::ops::ControlFlow;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// Does all `jobs` on up to `threads` threads, this one included. The results come in the order of
/// the jobs, whoever did them. All threads have ended when it returns.
///
/// `pulse` is called on this thread before each of its jobs, and whenever a job asks whether to go on.
/// Once it breaks off, no more jobs are begun, those that ask are told to end early, and its reason
/// comes with the results there are.
pub(crate) fn share<T, R, B>(
    threads: usize,
    jobs: Vec<T>,
    work: impl Fn(T, &mut dyn FnMut() -> bool) -> R + Sync,
    mut pulse: impl FnMut() -> ControlFlow<B>,
) -> (Vec<R>, ControlFlow<B>)
where
    T: Send,
    R: Send,
{
    let helpers = threads.min(jobs.len()).saturating_sub(1);
    let queue = Mutex::new(jobs.into_iter().enumerate());
    // A function of its own, so that the lock is not held while the job is done.
    let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).next();
    let cancelled = AtomicBool::new(false);
    let cancel = || {
        cancelled.store(true, Ordering::Relaxed);
        queue.lock().unwrap_or_else(PoisonError::into_inner).by_ref().for_each(drop);
    };
    let help = || {
        let mut done = Vec::new();
        while let Some((place, job)) = next() {
            done.push((place, work(job, &mut || !cancelled.load(Ordering::Relaxed))));
        }
        done
    };
    let (mut done, flow) = thread::scope(|scope| {
        let helpers: Vec<_> = (0..helpers).map(|_| scope.spawn(help)).collect();
        let mut done = Vec::new();
        let mut flow = ControlFlow::Continue(());
        let mut goes_on = || {
            if flow.is_continue() {
                flow = pulse();
                if flow.is_break() {
                    cancel();
                }
            }
            flow.is_continue()
        };
        while let Some((place, job)) = next() {
            if !goes_on() {
                break;
            }
            done.push((place, work(job, &mut goes_on)));
        }
        for helper in helpers {
            done.extend(helper.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        (done, flow)
    });
    done.sort_unstable_by_key(|&(place, _)| place);
    (done.into_iter().map(|(_, result)| result).collect(), flow)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_the_order_of_the_jobs_whatever_the_number_of_threads() {
        let squares: Vec<u64> = (0..500).map(|n| n * n).collect();
        for threads in [0, 1, 2, 7] {
            let on = || ControlFlow::<()>::Continue(());
            let (results, flow) = share(threads, (0..500).collect(), |n: u64, _| n * n, on);
            assert_eq!((results, flow), (squares.clone(), ControlFlow::Continue(())));
        }
    }

    #[test]
    fn few_jobs_are_begun_after_the_pulse_has_broken_off() {
        const JOBS: usize = 1000;
        for threads in [1, 2] {
            let enough = AtomicBool::new(false);
            // A helper cannot get ahead of the pulse, and takes its time once it is over.
            let work = |_, _: &mut dyn FnMut() -> bool| {
                while !enough.load(Ordering::Relaxed) {
                    thread::yield_now();
                }
                thread::sleep(std::time::Duration::from_millis(1));
            };
            let off = || {
                enough.store(true, Ordering::Relaxed);
                ControlFlow::Break("enough")
            };
            let (results, flow) = share(threads, vec![(); JOBS], work, off);
            assert_eq!(flow, ControlFlow::Break("enough"));
            assert!(results.len() < JOBS / 2, "{} jobs were done", results.len());
        }
    }

    #[test]
    fn a_long_job_ends_early_once_the_pulse_has_broken_off() {
        for threads in [1, 2] {
            let mut pulses = 0;
            let pulse = || {
                pulses += 1;
                if pulses < 10 { ControlFlow::Continue(()) } else { ControlFlow::Break("enough") }
            };
            // Without an end of its own.
            let work = |_, goes_on: &mut dyn FnMut() -> bool| while goes_on() {};
            let (results, flow) = share(threads, vec![(); 2], work, pulse);
            assert_eq!(flow, ControlFlow::Break("enough"));
            assert!(!results.is_empty());
        }
    }
}

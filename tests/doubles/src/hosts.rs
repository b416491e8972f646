//! Jobs on several hosts, all in one process: ranks of one host share a segment, and reach the others over a network that
//! the caller makes.

use std::sync::Arc;

use transport_lapi::adapter::{Adapter, AdapterError, Doorbell, TaskId};
use transport_lapi::adapters::hosts::HostsAdapter;
use transport_lapi::adapters::threads;
use transport_lapi::bootstrap::hosts::{HostPlan, JobTable, TableWriter};

/// Plans a job of `num_tasks` tasks, of which each runs on the host that `host_of` names. Hosts are numbered without
/// gaps.
pub fn plan(num_tasks: usize, host_of: fn(TaskId) -> u32) -> HostPlan {
    let host_of: Vec<u32> = (0..num_tasks as TaskId).map(host_of).collect();
    let hosts = host_of.iter().max().map_or(0, |last| last + 1);
    HostPlan { names: (0..hosts).map(|host| format!("host{host}")).collect(), host_of }
}

/// Makes a job of tasks with `contexts` contexts each. `network` makes the adapters of one context, for the bells of all
/// tasks in order. Returns, for each task in order, the adapters of its contexts in order.
///
/// # Errors
/// Those of the network; [`AdapterError::TaskCount`], [`AdapterError::ContextCount`].
///
/// # Panics
/// If the network has another number of tasks.
pub fn job<N: Adapter>(
    plan: &HostPlan,
    contexts: usize,
    mut network: impl FnMut(usize, Vec<Arc<dyn Doorbell>>) -> Result<Vec<N>, AdapterError>,
) -> Result<Vec<Vec<HostsAdapter>>, AdapterError> {
    let mut tasks = Vec::new();
    for host in 0..plan.names.len() {
        let here = plan.tasks_of(host);
        let table = TableWriter::in_process(plan, host, contexts, [7; 32])?.into_table();
        let table: Arc<JobTable> = Arc::new(table);
        let local = threads::job_with_contexts(here.len(), contexts)?;
        tasks.extend(here.into_iter().zip(local).map(|(task, local)| (task, local, table.clone())));
    }
    tasks.sort_by_key(|&(task, ..)| task);
    let mut joined: Vec<_> = tasks.iter().map(|_| Vec::with_capacity(contexts)).collect();
    let mut locals: Vec<_> =
        tasks.into_iter().map(|(_, local, table)| (local.into_iter(), table)).collect();
    for context in 0..contexts {
        let next = |(local, table): &mut (std::vec::IntoIter<_>, Arc<JobTable>)| {
            Some((local.next()?, table.clone()))
        };
        let of_context: Vec<(threads::ThreadsAdapter, _)> =
            locals.iter_mut().filter_map(next).collect();
        let bells = of_context.iter().map(|(local, _)| local.parts().bell).collect();
        let network = network(context, bells)?;
        assert_eq!(network.len(), of_context.len(), "the network has as many tasks");
        for ((task, (local, table)), network) in joined.iter_mut().zip(of_context).zip(network) {
            task.push(HostsAdapter::new(local, network, table)?);
        }
    }
    Ok(joined)
}

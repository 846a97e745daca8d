//! The table of functions for the commands that the server runs itself.

use tidewheel_keyspace::rows::{COUNT, number_of};
use tidewheel_resp::Args;

use super::HandlerResult;
use super::script::Form;
use crate::clients::connection::Connection;
use crate::commands::turn::Turn;
use crate::pubsub::subscriptions::SubscriptionKind;

/// Runs a command.
pub(super) type CommandHandler = fn(&mut Turn<'_>, &mut Connection, Args<'_>) -> HandlerResult;

/// The function of each row of the table of commands, at the row's number.
pub(super) static HANDLERS: [Option<CommandHandler>; COUNT] = {
    let mut handlers: [Option<CommandHandler>; COUNT] = [None; COUNT];
    let mut i = 0;
    while i < BY_NAME.len() {
        let (name, run) = BY_NAME[i];
        handlers[number_of(name)] = Some(run);
        i += 1;
    }
    handlers
};

#[rustfmt::skip] // A line for each.
const BY_NAME: &[(&str, CommandHandler)] = &[
    ("ping", |turn, conn, args| turn.ping(conn, args)),
    ("exec", |turn, conn, _| turn.exec(conn)),
    ("multi", |turn, conn, _| turn.multi(conn)),
    ("watch", |turn, conn, args| turn.watch(conn, args)),
    ("publish", |turn, conn, args| turn.publish(conn, args)),
    ("eval", |turn, conn, args| turn.eval(conn, args, Form { by_name: false, reads: false })),
    ("eval_ro", |turn, conn, args| turn.eval(conn, args, Form { by_name: false, reads: true })),
    ("evalsha", |turn, conn, args| turn.eval(conn, args, Form { by_name: true, reads: false })),
    ("evalsha_ro", |turn, conn, args| turn.eval(conn, args, Form { by_name: true, reads: true })),
    ("fcall", |turn, conn, args| turn.fcall(conn, args, false)),
    ("fcall_ro", |turn, conn, args| turn.fcall(conn, args, true)),
    ("function|delete", |turn, _, args| turn.function_delete(args)),
    ("function|dump", |turn, _, _| turn.function_dump()),
    ("function|flush", |turn, _, args| turn.function_flush(args)),
    ("function|kill", |turn, _, _| turn.function_kill()),
    ("function|list", |turn, _, args| turn.function_list(args)),
    ("function|load", |turn, _, args| turn.function_load(args)),
    ("function|restore", |turn, _, args| turn.function_restore(args)),
    ("function|stats", |turn, _, _| turn.function_stats()),
    ("script|exists", |turn, _, args| turn.script_exists(args)),
    ("script|flush", |turn, _, args| turn.script_flush(args)),
    ("script|kill", |turn, _, _| turn.script_kill()),
    ("script|load", |turn, _, args| turn.script_load(args)),
    ("script|show", |turn, _, args| turn.script_show(args)),
    ("discard", |turn, conn, _| turn.discard(conn)),
    ("unwatch", |turn, conn, _| turn.unwatch(conn)),
    ("echo", |turn, _, args| turn.echo(args)),
    ("acl|cat", |turn, _, args| turn.acl_cat(args)),
    ("acl|deluser", |turn, conn, args| turn.acl_del_user(conn, args)),
    ("acl|dryrun", |turn, conn, args| turn.acl_dry_run(conn, args)),
    ("acl|genpass", |turn, _, args| turn.acl_gen_pass(args)),
    ("acl|getuser", |turn, _, args| turn.acl_get_user(args)),
    ("acl|list", |turn, _, _| turn.acl_list()),
    ("acl|load", |turn, conn, _| turn.acl_load(conn)),
    ("acl|log", |turn, _, args| turn.acl_log(args)),
    ("acl|save", |turn, _, _| turn.acl_save()),
    ("acl|setuser", |turn, conn, args| turn.acl_set_user(conn, args)),
    ("acl|users", |turn, _, _| turn.acl_users()),
    ("acl|whoami", |turn, conn, _| turn.acl_who_am_i(conn)),
    ("auth", |turn, conn, args| turn.auth(conn, args)),
    ("client|caching", |turn, conn, args| turn.client_caching(conn, args)),
    ("client|getredir", |turn, conn, _| turn.client_get_redirect(conn)),
    ("client|tracking", |turn, conn, args| turn.client_tracking(conn, args)),
    ("client|trackinginfo", |turn, conn, _| turn.client_tracking_info(conn)),
    ("client|getname", |turn, conn, _| turn.client_get_name(conn)),
    ("client|id", |turn, conn, _| turn.client_id(conn)),
    ("client|info", |turn, conn, _| turn.client_info(conn)),
    ("client|kill", |turn, conn, args| turn.client_kill(conn, args)),
    ("client|list", |turn, conn, args| turn.client_list(conn, args)),
    ("client|no-evict", |turn, conn, args| turn.client_no_evict(conn, args)),
    ("client|no-touch", |turn, conn, args| turn.client_no_touch(conn, args)),
    ("client|pause", |turn, conn, args| turn.client_pause(conn, args)),
    ("client|reply", |turn, conn, args| turn.client_reply(conn, args)),
    ("client|setinfo", |turn, conn, args| turn.client_set_info(conn, args)),
    ("client|setname", |turn, conn, args| turn.client_set_name(conn, args)),
    ("client|unblock", |turn, _, args| turn.client_unblock(args)),
    ("client|unpause", |turn, conn, _| turn.client_unpause(conn)),
    ("config|get", |turn, _, args| turn.config_get(args)),
    ("config|resetstat", |turn, _, args| turn.config_reset_stat(args)),
    ("config|rewrite", |turn, _, _| turn.config_rewrite()),
    ("config|set", |turn, _, args| turn.config_set(args)),
    ("debug|error", |turn, conn, args| turn.debug_error(conn, args)),
    ("debug|help", |turn, conn, args| turn.debug_help(conn, args)),
    ("debug|loadaof", |turn, conn, _| turn.debug_load_aof(conn)),
    ("debug|log", |turn, conn, args| turn.debug_log(conn, args)),
    ("debug|pause-cron", |turn, conn, args| turn.debug_pause_cron(conn, args)),
    ("debug|protocol", |turn, conn, args| turn.debug_protocol(conn, args)),
    ("debug|quicklist-packed-threshold", |turn, conn, args| turn.debug_packed_threshold(conn, args)),
    ("debug|reload", |turn, conn, args| turn.debug_reload(conn, args)),
    ("debug|set-active-expire", |turn, conn, args| turn.debug_set_active_expire(conn, args)),
    ("debug|set-disable-deny-scripts", |turn, conn, args| turn.debug_allow_in_scripts(conn, args)),
    ("debug|set-skip-checksum-validation", |turn, conn, args| turn.debug_skip_checksums(conn, args)),
    ("debug|sleep", |turn, conn, args| turn.debug_sleep(conn, args)),
    ("debug|stringmatch-len", |turn, conn, args| turn.debug_string_match(conn, args)),
    ("hello", |turn, conn, args| turn.hello(conn, args)),
    ("info", |turn, _, args| turn.info(args)),
    ("latency|doctor", |turn, _, _| turn.latency_doctor()),
    ("latency|graph", |turn, _, args| turn.latency_graph(args)),
    ("latency|histogram", |turn, _, args| turn.latency_histogram(args)),
    ("latency|history", |turn, _, args| turn.latency_history(args)),
    ("latency|latest", |turn, _, _| turn.latency_latest()),
    ("latency|reset", |turn, _, args| turn.latency_reset(args)),
    ("lolwut", |turn, _, args| turn.lolwut(args)),
    ("memory|doctor", |turn, _, _| turn.memory_doctor()),
    ("memory|malloc-stats", |turn, _, _| turn.memory_malloc_stats()),
    ("memory|purge", |turn, _, _| turn.memory_purge()),
    ("memory|stats", |turn, _, _| turn.memory_stats()),
    ("monitor", |turn, conn, _| turn.monitor(conn)),
    ("psubscribe", |turn, conn, args| turn.subscribe(conn, SubscriptionKind::Pattern, args)),
    ("pubsub|channels", |turn, conn, args| turn.pubsub_channels(conn, SubscriptionKind::Channel, args)),
    ("pubsub|numpat", |turn, _, _| turn.pubsub_num_pat()),
    ("pubsub|numsub", |turn, _, args| turn.pubsub_num_sub(SubscriptionKind::Channel, args)),
    ("pubsub|shardchannels", |turn, conn, args| turn.pubsub_channels(conn, SubscriptionKind::Shard, args)),
    ("pubsub|shardnumsub", |turn, _, args| turn.pubsub_num_sub(SubscriptionKind::Shard, args)),
    ("punsubscribe", |turn, conn, args| turn.unsubscribe(conn, SubscriptionKind::Pattern, args)),
    ("quit", |turn, _, _| turn.quit()),
    ("reset", |turn, conn, _| Ok(turn.reset(conn))),
    ("role", |turn, _, _| turn.role()),
    ("bgrewriteaof", |turn, conn, _| turn.rewrite_log(conn)),
    ("bgsave", |turn, conn, args| turn.save_in_background(conn, args)),
    ("lastsave", |turn, _, _| turn.last_save()),
    ("save", |turn, conn, _| turn.save(conn)),
    ("shutdown", |turn, conn, args| turn.shutdown(conn, args)),
    ("slowlog|get", |turn, _, args| turn.slow_log_get(args)),
    ("slowlog|len", |turn, _, _| turn.slow_log_len()),
    ("slowlog|reset", |turn, _, _| turn.slow_log_reset()),
    ("spublish", |turn, conn, args| turn.publish_to_shard(conn, args)),
    ("ssubscribe", |turn, conn, args| turn.subscribe(conn, SubscriptionKind::Shard, args)),
    ("subscribe", |turn, conn, args| turn.subscribe(conn, SubscriptionKind::Channel, args)),
    ("sunsubscribe", |turn, conn, args| turn.unsubscribe(conn, SubscriptionKind::Shard, args)),
    ("unsubscribe", |turn, conn, args| turn.unsubscribe(conn, SubscriptionKind::Channel, args)),
    ("wait", |turn, _, args| turn.wait(args)),
    ("waitaof", |turn, conn, args| turn.wait_aof(conn, args)),
];

#[cfg(test)]
mod tests {
    use tidewheel_keyspace::{all_rows, is_run_here};

    use super::HANDLERS;

    #[test]
    fn the_server_runs_what_the_keyspace_leaves_to_it_and_nothing_else() {
        for row in all_rows().iter().filter(|row| !row.has_subcommands()) {
            let is_left = !is_run_here(row);
            assert_eq!(
                HANDLERS[usize::from(row.number)].is_some(),
                is_left,
                "{}",
                row.name
            );
        }
    }
}

use std::path::Path;
use std::process::Command;

use super::{Known, Treatment, known_options, lookup, of_argument};
use crate::fio::{known_engines, parse_command_line, parse_file};

/// Options of fio 3.33 with their aliases: `fio --cmdhelp=all`, `fio --enghelp=ENGINE` and sources.
const OPTIONS: &str = "\
    description name wait_for filename directory filename_format unique_filename lockfile opendir rw \
    readwrite rw_sequencer ioengine iodepth iodepth_batch iodepth_batch_submit \
    iodepth_batch_complete_min iodepth_batch_complete iodepth_batch_complete_max iodepth_low \
    serialize_overlap io_submit_mode size io_size io_limit fill_device fill_fs filesize file_append \
    offset fileoffset offset_align offset_increment number_ios bs blocksize ba blockalign bsrange \
    blocksize_range bssplit bs_unaligned blocksize_unaligned bs_is_seq_rand randrepeat randseed \
    norandommap softrandommap random_generator random_distribution percentage_random \
    percentage_sequential allrandrepeat nrfiles nr_files openfiles file_service_type fallocate \
    fadvise_hint fsync fdatasync write_barrier sync_file_range direct atomic buffered overwrite \
    loops numjobs startdelay runtime timeout time_based verify_only ramp_time clocksource mem iomem \
    iomem_align mem_align verify do_verify verifysort verifysort_nr verify_interval verify_offset \
    verify_pattern verify_fatal verify_dump verify_async verify_backlog verify_backlog_batch \
    verify_async_cpus experimental_verify verify_state_load verify_state_save trim_percentage \
    trim_verify_zero trim_backlog trim_backlog_batch write_iolog read_iolog read_iolog_chunked \
    replay_no_stall replay_redirect replay_scale replay_align replay_time_scale replay_skip \
    merge_blktrace_file merge_blktrace_scalars merge_blktrace_iters exec_prerun exec_postrun \
    ioscheduler zonemode zonesize zonecapacity zonerange zoneskip read_beyond_wp max_open_zones \
    job_max_open_zones ignore_zone_limits zone_reset_threshold zone_reset_frequency lockmem \
    rwmixread rwmixwrite rwmixcycle nice prio prioclass thinktime thinktime_spin thinktime_blocks \
    thinktime_blocks_type thinktime_iotime rate rate_min ratemin rate_iops rate_iops_min \
    rate_process rate_cycle ratecycle rate_ignore_thinktime max_latency latency_target \
    latency_window latency_percentile latency_run invalidate sync write_hint create_serialize \
    create_fsync create_on_open create_only allow_file_create allow_mounted_write pre_read cpumask \
    cpus_allowed cpus_allowed_policy numa_cpu_nodes numa_mem_policy gpu_dev_id end_fsync \
    fsync_on_close unlink unlink_each_loop exitall exit_what exitall_on_error stonewall \
    wait_for_previous new_group thread per_job_logs write_bw_log write_lat_log write_iops_log \
    log_entries log_avg_msec log_hist_msec log_hist_coarseness write_hist_log log_max_value \
    log_offset log_prio log_compression log_compression_cpus log_store_compressed log_unix_epoch \
    log_alternate_epoch log_alternate_epoch_clock_id block_error_percentiles bwavgtime iopsavgtime \
    group_reporting stats zero_buffers refill_buffers scramble_buffers buffer_pattern \
    buffer_compress_percentage buffer_compress_chunk dedupe_percentage dedupe_global dedupe_mode \
    dedupe_working_set_percentage clat_percentiles lat_percentiles slat_percentiles percentile_list \
    significant_figures disk_util gtod_reduce disable_lat disable_clat disable_slat \
    disable_bw_measurement disable_bw gtod_cpu unified_rw_reporting continue_on_error ignore_error \
    error_dump profile cgroup cgroup_nodelete cgroup_weight uid gid kb_base unit_base hugepage-size \
    flow_id flow flow_watermark flow_sleep steadystate ss steadystate_duration ss_dur \
    steadystate_ramp_time ss_ramp cpuload cpumode cpuchunks exit_on_io_done pool cont chunk_size \
    object_class svcl donorname inplace program arguments grace_time std_redirect stat_type https \
    http_host http_user http_pass http_s3_key http_s3_keyid http_swift_auth_token http_s3_region \
    http_s3_sse_customer_key http_s3_sse_customer_algorithm http_s3_storage_class http_mode \
    http_verbose hipri cmdprio_percentage cmdprio_class cmdprio cmdprio_bssplit fixedbufs \
    registerfiles sqthread_poll sqthread_poll_cpu nonvectored uncached nowait force_async cmd_type \
    userspace_reap gpu_dev_ids cuda_io namenode hostname port hdfsdirectory chunck_size \
    single_instance hdfs_use_direct initiator thp skip_bad uri protocol proto nodelay listen \
    pingpong interface ttl window_size mss nfs_url clustername clientname conf busy_poll \
    touch_objects rbdname bindname verb readfua writefua sg_write_mode stream_id hipri_percentage \
    no_completion_thread xnvme_be xnvme_async xnvme_sync xnvme_admin xnvme_dev_nsid xnvme_iovec \
    device-names load test-duration threads-per-queue read-req-num-512-blocks large-block-op-kbytes \
    prep block numruns dir threads volume brick single-instance serverip direct_write_to_pmem \
    busy_wait_polling";

/// Engines of fio 3.33: `fio --enghelp`, and those that a build may lack.
const ENGINES: &str = "\
    cpuio mmap sync psync vsync pvsync pvsync2 null net netsplice ftruncate filecreate filestat \
    filedelete exec posixaio falloc e4defrag splice gfapi gfapi_async mtd sg io_uring io_uring_cmd \
    nbd libaio rdma rados rbd pmemblk dev-dax libpmem http libiscsi libzbc libhdfs libcufile \
    ime_psync ime_psyncv ime_aio dfs nfs xnvme librpma_apm_client librpma_apm_server \
    librpma_gpspm_client librpma_gpspm_server solarisaio windowsaio cpp_null external";

/// Settings that ask for nothing: fio 3.33 takes all of them.
const NEUTRAL: &str = "\
    verify=0 do_verify=0 verify_fatal=0 verify_dump=0 verify_backlog=0 verify_only=0 \
    experimental_verify=0 trim_percentage=0 loops=1 openfiles=1 zonemode=none zonesize=0 zoneskip=0 \
    max_open_zones=0 sync=0 sync=none io_submit_mode=inline latency_target=0 max_latency=0 exitall=0 \
    exit_what=group flow=0 rate_ignore_thinktime=0 serialize_overlap=0 fsync_on_close=0 end_fsync=0 \
    pre_read=0 thinktime_spin=0 thinktime_iotime=0 bs_is_seq_rand=0 blocksize_unaligned=0 \
    unique_filename=0 lockfile=none fill_device=0 nowait=0 write_hint=none ss_dur=0 nice=0 cpumask=3 \
    cmdprio_percentage=0 sqthread_poll=0 uncached=0 force_async=0";

#[test]
fn every_option_and_engine_of_fio_is_known() {
    let unknown: Vec<&str> = OPTIONS
        .split_whitespace()
        .filter(|name| lookup(name).is_none())
        .collect();
    assert_eq!(unknown, [""; 0]);
    let known = |name: &&str| known_engines().any(|(known, _)| known == *name);
    let unknown: Vec<&str> = ENGINES
        .split_whitespace()
        .filter(|name| !known(name))
        .collect();
    assert_eq!(unknown, [""; 0]);
}

#[test]
fn settings_that_ask_for_nothing_are_accepted() {
    for setting in NEUTRAL.split_whitespace() {
        let text = format!("[j]\nioengine=io_uring\n{setting}\n");
        let parsed = parse_file(Path::new("j.fio"), &text);
        assert!(parsed.is_ok(), "{setting}: {parsed:?}");
    }
    let job = &parse_command_line(&["--name=j", "--cpumask=0xa"])
        .unwrap()
        .jobs[0];
    assert_eq!(job.cpus_allowed.as_deref(), Some([1, 3].as_slice()));
}

/// Of every option that is refused: the values that are accepted are right for fio, too.
#[test]
fn fio_takes_the_same_values() {
    let version = Command::new("fio").arg("--version").output();
    if !version.is_ok_and(|version| version.stdout == b"fio-3.33\n") {
        return;
    }
    let of_3_33 = |known: &Known| OPTIONS.split_whitespace().any(|name| name == known.name);
    let values = known_options().filter(of_3_33).flat_map(|known| {
        let settings = known
            .neutral()
            .map(move |value| format!("--{}={value}", known.name));
        settings.collect::<Vec<_>>()
    });
    let values: Vec<String> = values.collect();
    assert!(values.len() >= 15, "{values:?}");
    let takes = |settings: &[String]| {
        let job = [
            "--parse-only",
            "--name=j",
            "--size=1m",
            "--ioengine=io_uring",
        ];
        let done = Command::new("fio").args(job).args(settings).output();
        done.is_ok_and(|done| done.status.success())
    };
    // One by one, to name the one that it does not take.
    if !takes(&values) {
        for value in &values {
            assert!(takes(std::slice::from_ref(value)), "{value}");
        }
        panic!("each by itself, but not all together: {values:?}");
    }
}

#[test]
fn the_beginning_of_a_name_does_on_a_command_line() {
    let name = |text: &str| of_argument(text).map(|known| known.name);
    assert_eq!(name("numj"), Ok("numjobs"));
    assert_eq!(name("status-i"), Ok("status-interval"));
    // The whole name of one option begins others.
    assert_eq!(name("bs"), Ok("bs"));
    let several = "may be any of cpus_allowed, cpus_allowed_policy";
    assert_eq!(name("cpus"), Err(several.to_owned()));
    let job = &parse_command_line(&["--name=j", "--iodepth_l", "3"])
        .unwrap()
        .jobs[0];
    assert_eq!(job.written[0].option, "iodepth_low");
    // Not in a file.
    let error = parse_file(Path::new("j.fio"), "[j]\nnumj=2\n").unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("j.fio:2: numj: not an option that blksim knows"),
        "{error}"
    );
}

#[test]
fn a_reason_names_the_values_that_are_accepted() {
    let error = parse_command_line(&["--name=j", "--openfiles=3"])
        .unwrap_err()
        .to_string();
    assert!(
        error.ends_with("are open (openfiles=0 or 1 is accepted)"),
        "{error}"
    );
    for known in known_options() {
        let refused = matches!(known.treatment, Treatment::Refused(_));
        assert!(
            refused || known.neutral().next().is_none(),
            "{}",
            known.name
        );
    }
}

#[test]
fn options_of_engines_need_their_engine() {
    let notes = |engine: &str| parse_command_line(&["--name=j", engine, "--cmd_type=nvme"]);
    let noted = notes("--ioengine=io_uring").unwrap().ignored;
    assert_eq!(noted[0].why, "has no effect with io_uring, in fio too");
    let error = notes("--ioengine=libaio").unwrap_err().to_string();
    assert!(
        error.contains("cmd_type: is an option of ioengine=io_uring, io_uring_cmd"),
        "{error}"
    );
}

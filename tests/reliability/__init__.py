"""Tests of attacks and failures: short forms of all rows here, long ones by `make soak`
(`soak.py`, test_soak), which also measures (`soak_figures.py`). What other tests hold is not held
here again.

row  what                                            tests, of this folder where none is named
---  ----------------------------------------------  -----------------------------------------------
     load
L1   eight editors: no reply lost or doubled         test_editors
L2   cancelled requests; idle afterwards             e2e/test_lsp_storm, e2e/test_daemon_supervisor,
                                                     e2e/test_daemon (a cancelled request)
L3   long typing, flat memory                        test_editors; soak_figures
L4   many starts at once: one daemon, one worker     e2e/test_daemon (clients that come at once),
                                                     unit/test_daemon_start
L5   a flood over HTTP, fair between keys            test_keys, unit/test_http_front
     failures
F1   kills, hangs and stops of worker and daemon     e2e/test_daemon, e2e/test_lsp, test_hung,
                                                     test_stopped_daemon; soak_figures
F2   failing calls and kills while an index is made  test_failing_calls, test_killed_builds,
                                                     e2e/test_index_process
F3   damaged index files; cut short while in use     property/test_segment, unit/test_index_upkeep,
                                                     unit/test_index_symbols; test_cut_short
F4   a full disk, one that is read-only, an index    test_machines, unit/test_index_watch,
     that is gone                                    unit/test_models_download; test_index_gone
F5   damaged models                                  test_models_damaged, model/test_odd_models,
                                                     e2e/test_daemon (a damaged model)
F6   little memory; what takes too much              test_machines, test_no_memory, test_memory
F7   a wrong clock                                   test_machines
F8   another version beside                          test_two_versions, e2e/test_daemon_server
F9   damaged statistics and learned state            unit/test_stats, unit/test_planners,
                                                     unit/test_measure, unit/test_planner_weights
F10  kills and faults of a model's server            test_engine_killed, unit/test_served_engine
     inputs
B0   bounds of all that clients say                  test_bounds, test_editor_bounds
B1   malformed messages                              test_frames, e2e/test_lsp_hostile,
                                                     e2e/test_daemon_server
B2   edits in three encodings                        property/test_positions, property/test_edits
B3   odd documents                                   test_odd_documents, test_long_lines
B4   odd trees of files                              unit/test_index_scan, unit/test_index_ignore
B5   text made to kill parsers, in all grammars      test_grammars, e2e/test_index_process,
                                                     e2e/test_index_parsers, unit/test_index_trees
     attacks
S1   other users of the machine                      test_other_users, test_files,
                                                     unit/test_daemon_address
S2   Host, Origin, methods, keys                     e2e/test_http_rules, unit/test_http_front
S3   a hostile repository                            test_hostile_repository, test_programs,
                                                     e2e/test_processes, unit/test_bench_history
S4   paths and names that lead elsewhere             test_names_of_documents, e2e/test_http_rules,
                                                     unit/test_index_scan
S5   secrets                                         test_secrets, e2e/test_lsp_secrets,
                                                     test_shown_elsewhere
S6   text on disk, in logs, in cores                 test_canary, test_cores, e2e/test_daemon_server
S7   unseen characters                               test_invisible, unit/test_postprocess
S8   what one client sent, shown to another          test_keys, e2e/test_http_rules
S9   connections to elsewhere                        test_network
"""

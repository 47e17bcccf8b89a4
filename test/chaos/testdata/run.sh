# Read first by every agent and judge of the storm. It holds a lock while it or
# anything it started lives, so that a second run at the same time is seen.
task=$CLAUDOMATOR_TASK_ID run=$CLAUDOMATOR_EXECUTION_ID
ledger=$CHAOS/ledger

exec 9>"$CHAOS/locks/$task"
flock -n -E 99 9 || { # it may have been killed: only 99 says that another run lives
	[ $? -ne 99 ] || echo "twice $task $run held" >>"$ledger"
	exit 1
}

tool() { "$CLAUDOMATOR_BIN" tool "$@"; }
spawn() { # NAME PROGRAM PART KEY [DEPENDS_ON]
	tool spawn_subtask "{\"name\":\"$1\",\"instructions\":\"exec sh \$CHAOS/$2 $3 $4\",\"depends_on\":[${5:+\"$5\"}]}" >/dev/null
}
nap() { sleep "0.$(($(date +%N | tail -c 4 | sed 's/^0*//;s/^$/0/') % 3))"; }
told() { # WORD: a run whose server is gone has no business to go on
	context=$(tool get_context) || exit 1
	echo "$context" | grep -q "\"$1\""
}

#!/bin/sh
# What the builders of a story run: builder.sh PART KEY. What they make depends on
# part and key alone, whichever run makes it: however often it was killed, the story
# is the same in the end.
set -eu
part=$1 key=$2
. "$CHAOS/run.sh"
echo "$key" >"$CHAOS/keys/$task" # tells a judge whose work it has before it

put() { mkdir -p story && echo "$1" >"story/$1"; } # NAME
save() {
	git add -A
	git diff --cached --quiet || git commit -qm "$key"
	head=$(git rev-parse HEAD) # which alone may be killed
	echo "commit $task $run $head" >>"$ledger"
}
child() { spawn "$1" builder.sh "$2" "$key-$1" "${3-}"; } # NAME PART [DEPENDS_ON]

case $key in
a | b-two | c-two-one | d-one) # what is rejected, and mended then
	if told rejection; then
		rm -f "flaw-$key"
		put "$key-mended"
	else
		echo "$key" >"flaw-$key"
	fi
	;;
esac
put "$key"
nap
save
case $part in
limb)
	child one twig
	nap
	child two bough one
	;;
bough)
	child one twig
	child two twig
	;;
twig)
	put "$key-more"
	save
	put "$key-last" # is not committed: the server does it
	;;
asker)
	told answer || {
		tool ask_user '{"question":"this or that?","options":["this","that"]}' >/dev/null
		sleep 60
	}
	put "$key-answered"
	child one twig
	child two bough one
	;;
crown) # what the root lacks at its first attempt
	;;
*)
	echo "no part $part" >&2
	exit 2
	;;
esac

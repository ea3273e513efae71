#!/bin/sh
# Prints the version of a driver's checkout, $UTR_CHECKOUTS/$1: main, its commit, and a hash of what is not committed.
set -e
case "$UTR_CHECKOUTS" in
/*) cd "$UTR_CHECKOUTS/$1" ;;
*) echo "UTR_CHECKOUTS must be the absolute path of a folder that contains a checkout of $1" >&2 && exit 1 ;;
esac
version=main-$(git rev-parse --short=10 HEAD)
[ -z "$(git status --porcelain --untracked-files=no)" ] || version=$version-$(git diff HEAD | git hash-object --stdin | cut -c 1-10)
echo "$version"

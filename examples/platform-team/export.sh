#!/bin/sh
# The CI job of docs/platform-team.md that proposes sizes, in a clone of the team's repository: `export.sh NAMESPACE`.
# The branch hvpa-sizes has the pull request. It begins at main each time.
set -eu
code=0
git fetch -q origin main
git switch -q -C hvpa-sizes origin/main
hvpa export -n "$1" --to sizes || code=$?   # 1: some were not exported; the others were
grep -q components "$1/kustomization.yaml" || echo "components: [../sizes/$1]" >> "$1/kustomization.yaml"
git add --all .
if ! git diff --cached --quiet; then
  git -c user.name=hvpa -c user.email=hvpa@example.com commit -q -m "Update sizes of $1"
  git push -q --force origin hvpa-sizes
fi
exit $code

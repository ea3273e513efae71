// Package schema validates suite files against the JSON schemas of the
// Unified Test Format, versions 1.0 to [Newest].
//
// There is one annotated source, in format.go: which keys each object has,
// which values each key takes, and the minor version of the format that
// brought each of them. Everything else is derived from it: the JSON schema
// of a version; the verdict on a file, by a walk along the source and the file;
// the messages, which name the place and what was expected, and for what a
// later version brought name that version; and the lowest version that a file
// needs.
//
// # Adding a version
//
// For version 1.29: set Newest and newest in version.go to it, and add to
// format.go a line for each key or value that is new, ending in since(29, …)
// or .since(29):
//
//	key("awaitReplicaSet", boolean).since(29),
//
// What only objects of the new version contain needs no annotation of its
// own: it is as old as the place where it stands. Nothing is ever removed:
// within a major version, a file that is valid in one minor version is valid
// in all later ones (section "Impact of Spec Changes on Schema Version"), so
// there is no "until". TestEveryConstraintHasARow then names the
// constraints that lack a row in TestMessages.
package schema

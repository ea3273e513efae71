// Package schema validates suite files against the JSON schemas of the Unified Test Format, versions 1.0 to [Newest].
//
// One annotated source, format.go, has the keys of each object, the values of each key, and the minor
// version that introduced them. Everything else is derived from it: the JSON schema of a version, which decides
// whether a file is valid; messages that explain why it is not; and the lowest version that a file requires.
//
// # Adding a version
//
// For version 1.29, change Newest and newest in version.go, and add a line to format.go for each new
// key or value, with since(29, …) or .since(29):
//
//	key("awaitReplicaSet", boolean).since(29),
//
// Keys and values inside a new object need no annotation. Nothing is ever removed: within a major
// version, a file that is valid in one minor version is valid in all later ones (section "Impact of Spec
// Changes on Schema Version"). Then add the new keys to testdata/format.txt for TestMessages.
package schema

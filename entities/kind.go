package entities

// Kind is a kind of entity.
type Kind string

// The kinds on which operations are performed. A Cursor is a find cursor, a command cursor or a change stream.
// TestRunner is the object of special test operations.
const (
	Client           Kind = "client"
	ClientEncryption Kind = "clientEncryption"
	Database         Kind = "database"
	Collection       Kind = "collection"
	Session          Kind = "session"
	Bucket           Kind = "bucket"
	Cursor           Kind = "cursor"
	TestRunner       Kind = "testRunner"
)

// Kinds of entities without operations.
const (
	Thread     Kind = "thread"
	Topology   Kind = "topologyDescription"
	SavedValue Kind = "BSON value"
)

// Parent is the entity that contains another.
type Parent struct {
	Kind Kind
	Keys []string // path to the name of the parent in the entity's document
}

// Parent returns what contains an entity of a kind, if its document names it. The parent of a cursor is the object that
// created it.
func (k Kind) Parent() (Parent, bool) {
	switch k {
	case ClientEncryption:
		return Parent{Client, []string{"clientEncryptionOpts", "keyVaultClient"}}, true
	case Database, Session:
		return Parent{Client, []string{"client"}}, true
	case Collection, Bucket:
		return Parent{Database, []string{"database"}}, true
	}
	return Parent{}, false
}

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

// Parent returns the kind of what contains an entity of a kind, and the path to the name of the parent in the entity's
// document; "" if no document names it. The parent of a cursor is the object that created it.
func (k Kind) Parent() (parent Kind, path []string) {
	switch k {
	case ClientEncryption:
		return Client, []string{"clientEncryptionOpts", "keyVaultClient"}
	case Database, Session:
		return Client, []string{"client"}
	case Collection, Bucket:
		return Database, []string{"database"}
	}
	return "", nil
}

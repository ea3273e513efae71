package command

import (
	"crypto/rand"
	"crypto/sha256"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// NewUUID is a random UUID, of version 4.
func NewUUID() bson.Binary {
	b := make([]byte, 16)
	rand.Read(b) // never fails
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return bson.Binary{Subtype: bson.TypeBinaryUUID, Data: b}
}

// UserDigest is the uid of a session: the digest of the user's name, which is empty without one.
func UserDigest(name string) bson.Binary {
	sum := sha256.Sum256([]byte(name))
	return bson.Binary{Data: sum[:]}
}

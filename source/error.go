package source

import "fmt"

// Reason is the class of an Error, for programs that distinguish them.
type Reason string

// The reasons for which a file is refused.
const (
	Malformed    Reason = "malformed"      // neither YAML nor JSON
	NotUTF8      Reason = "not UTF-8"      // bytes that are not UTF-8
	TooLarge     Reason = "too large"      // more than Limits.Bytes
	TooDeep      Reason = "too deep"       // nested more than Limits.Depth
	TooMany      Reason = "too many nodes" // more than Limits.Nodes with aliases expanded
	Cycle        Reason = "alias cycle"    // a collection that contains itself
	DuplicateKey Reason = "duplicate key"  // one document, one key twice
	Unsupported  Reason = "unsupported"    // YAML that suites have no use for: tags, NaN, several documents
	ExtendedJSON Reason = "Extended JSON"  // a $-document that is malformed
)

// Error says why a file, or a value in it, cannot be used. It is the only
// type of error that this package returns.
type Error struct {
	Position Position
	Reason   Reason
	Message  string // a full sentence part, without position
}

// Error gives file:line:column: message.
func (e *Error) Error() string {
	if e.Position.IsZero() {
		return e.Message
	}
	return e.Position.String() + ": " + e.Message
}

func errorAt(p Position, r Reason, format string, args ...any) *Error {
	return &Error{Position: p, Reason: r, Message: fmt.Sprintf(format, args...)}
}

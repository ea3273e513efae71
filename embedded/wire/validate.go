package wire

import (
	"encoding/binary"
	"fmt"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
	"github.com/unified-test-runner/utr/embedded/data/value"
)

// maxDepth is how deep documents may nest inside each other: the server's
// limit of 200 counts the frames that it keeps, the outermost included.
const maxDepth = 200

// validate checks the document at the front of b, and returns its length. The
// messages are those of the server, which names the element at fault by its
// path, and the document by its _id if that came before the fault.
func validate(b []byte) (int, error) {
	if len(b) < 5 {
		return 0, invalid("BSON data has to be at least 5 bytes", nil, nil)
	}
	n := int(int32(binary.LittleEndian.Uint32(b)))
	switch {
	case n < 5:
		return 0, invalid("BSON data has to be at least 5 bytes", nil, nil)
	case n > len(b):
		return 0, invalid("Incorrect BSON length", nil, nil)
	case n > MaxInternal:
		return 0, command.Errorf(command.CodeBSONObjectTooLarge, "BSONObj size: %d (0x%X) is invalid. Size must be between 0 and %d(16MB)", n, n, MaxInternal)
	case b[n-1] != 0:
		return 0, invalid("BSON object not terminated with EOO", nil, nil)
	}
	v := validator{data: b[:n]}
	if fault := v.elements(4, n-1); fault != nil {
		return 0, fault
	}
	return n, nil
}

type validator struct {
	data []byte
	path []span // names of the open elements
	id   []byte // the _id of the outermost document, type and value
}

// span is a name inside the data.
type span struct{ from, to int }

// elements checks what lies between from and the terminator at end. It does
// not recurse deeper than maxDepth.
func (v *validator) elements(from, end int) error {
	for at := from; at < end; {
		kind := bson.Type(v.data[at])
		start := at
		at++
		name := at
		for at < end && v.data[at] != 0 {
			at++
		}
		if kind == 0 || at >= end {
			return v.fault("BSON object not terminated with EOO")
		}
		v.path = append(v.path, span{name, at})
		at++
		next, err := v.value(kind, at, end)
		if err != nil {
			return err
		}
		if len(v.path) == 1 && string(v.data[name:at-1]) == "_id" && v.id == nil {
			v.id = v.data[start:next]
		}
		v.path = v.path[:len(v.path)-1]
		at = next
	}
	return nil
}

// fixed are the lengths of values that have one.
var fixed = map[bson.Type]int{
	bson.TypeDouble: 8, bson.TypeUndefined: 0, bson.TypeObjectID: 12, bson.TypeBoolean: 1,
	bson.TypeDateTime: 8, bson.TypeNull: 0, bson.TypeInt32: 4, bson.TypeTimestamp: 8,
	bson.TypeInt64: 8, bson.TypeDecimal128: 16, bson.TypeMinKey: 0, bson.TypeMaxKey: 0,
}

// value checks the value at at and returns where the next element begins.
func (v *validator) value(kind bson.Type, at, end int) (int, error) {
	if n, ok := fixed[kind]; ok {
		if end-at < n {
			return 0, v.fault("Incorrect BSON length")
		}
		if kind == bson.TypeBoolean && v.data[at] > 1 {
			return 0, v.fault("BSON bool is neither false nor true")
		}
		return at + n, nil
	}
	switch kind {
	case bson.TypeString, bson.TypeJavaScript, bson.TypeSymbol:
		return v.text(at, end)
	case bson.TypeDBPointer:
		next, err := v.text(at, end)
		if err == nil && end-next < 12 {
			err = v.fault("Incorrect BSON length")
		}
		return next + 12, err
	case bson.TypeBinary:
		n, ok := v.length(at, end, 5)
		if !ok || v.data[at+4] == bson.TypeBinaryBinaryOld && !v.oldBinary(at, n) {
			return 0, v.fault("Incorrect BSON length")
		}
		return at + 5 + n, nil
	case bson.TypeRegex:
		for range 2 {
			for at < end && v.data[at] != 0 {
				at++
			}
			if at >= end {
				return 0, v.fault("Not null terminated string")
			}
			at++
		}
		return at, nil
	case bson.TypeEmbeddedDocument, bson.TypeArray:
		return v.nested(at, end)
	case bson.TypeCodeWithScope:
		n, ok := v.length(at, end, 0)
		if !ok || n < 4+4+1+5 {
			return 0, v.fault("Incorrect BSON length")
		}
		scope, err := v.text(at+4, at+n)
		if err != nil {
			return 0, err
		}
		next, err := v.nested(scope, at+n)
		if err == nil && next != at+n {
			err = v.fault("Incorrect BSON length")
		}
		return next, err
	}
	return 0, v.fault(fmt.Sprintf("Unrecognized BSON type %d", int8(kind)))
}

// oldBinary reports whether a binary value of subtype 2 holds its length a second
// time. The server does not look; those who read the value later would stumble.
func (v *validator) oldBinary(at, n int) bool {
	inner, ok := v.length(at+5, at+5+n, 4)
	return ok && inner == n-4
}

// length reads the length at at, of which extra bytes are not counted, and
// reports whether there is so much.
func (v *validator) length(at, end, extra int) (int, bool) {
	if end-at < 4 {
		return 0, false
	}
	n := int(int32(binary.LittleEndian.Uint32(v.data[at:])))
	return n, n >= 0 && n <= end-at-extra
}

func (v *validator) text(at, end int) (int, error) {
	n, ok := v.length(at, end, 4)
	if !ok {
		return 0, v.fault("Incorrect BSON length")
	}
	if n == 0 || v.data[at+4+n-1] != 0 {
		return 0, v.fault("Not null terminated string")
	}
	return at + 4 + n, nil
}

func (v *validator) nested(at, end int) (int, error) {
	n, ok := v.length(at, end, 0)
	switch {
	case len(v.path) > maxDepth:
		e := invalid("BSONObj exceeds maximum nested object depth", v.names(), v.id)
		e.Code = command.CodeOverflow
		return 0, e
	case !ok:
		return 0, v.fault("Incorrect BSON length")
	case n < 5:
		return 0, v.fault("Nested BSON object has to be at least 5 bytes")
	case v.data[at+n-1] != 0:
		return 0, v.fault("BSON object not terminated with EOO")
	}
	return at + n, v.elements(at+4, at+n-1)
}

func (v *validator) fault(what string) error { return invalid(what, v.names(), v.id) }

func (v *validator) names() []string {
	names := make([]string, len(v.path))
	for i, s := range v.path {
		names[i] = string(v.data[s.from:s.to])
	}
	return names
}

func invalid(what string, path []string, id []byte) *command.Error {
	name := "?"
	if len(path) > 0 {
		name = strings.Join(path, ".")
	}
	whose := "unknown _id"
	if id != nil {
		v, _ := value.FromRaw(bson.RawElement(id).Value())
		whose = "_id: " + value.Text(v)
	}
	return command.Errorf(command.CodeInvalidBSON, "%s in element with field name '%s' in object with %s", what, name, whose)
}

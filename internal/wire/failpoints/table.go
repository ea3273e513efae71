// Package failpoints describes the fail points of servers: their names, the fields of their data, and the commands
// that they can fail. docs/suite/rules.md shows its tables.
package failpoints

import "slices"

// Type is the type of a field in the data of a fail point.
type Type string

// The types. A server ignores a field of any other type.
const (
	Bool     Type = "a boolean"
	Integer  Type = "an integer"
	Text     Type = "a string"
	Texts    Type = "an array of strings"
	Commands Type = "an array of command names"
	Object   Type = "a document"
	Objects  Type = "an array of documents"
)

// Field is a field in the data of a fail point.
type Field struct {
	Name  string
	Type  Type
	Since string // the first version that reads it; "" means every version with the fail point
	Doc   string
	// Effect fields determine what happens to a command. A fail point without any of them does nothing.
	Effect bool
	// Needs lists fields. Unless at least one of them is set, a server ignores this field. Nil means no such condition.
	Needs []string
}

// Point is a fail point.
type Point struct {
	Name  string
	Since string // the first version of mongod with it; "" means that only utr has it
	Doc   string
	// Fields of its data; nil means that it reads none.
	Fields []Field
	// Requires is a field. Unless it is set, the fail point affects no command. "" means no such condition.
	Requires string
	// Acts is set if the fail point has an effect without any field.
	Acts bool
}

// Field returns a field of the data by its name.
func (p Point) Field(name string) (Field, bool) { return named(p.Fields, name) }

func named(fields []Field, name string) (Field, bool) {
	i := slices.IndexFunc(fields, func(f Field) bool { return f.Name == name })
	if i < 0 {
		return Field{}, false
	}
	return fields[i], true
}

// Names returns the names of fields.
func Names(fields []Field) (names []string) {
	for _, f := range fields {
		names = append(names, f.Name)
	}
	return names
}

// The fields that several fail points have.
var (
	failCommands = Field{Name: "failCommands", Type: Commands, Doc: "the commands that it affects"}
	appName      = Field{Name: "appName", Type: Text, Since: "4.4", Doc: "affects only clients with this application name"}
	namespace    = Field{Name: "namespace", Type: Text, Since: "4.4",
		Doc: "affects only commands on this database.collection"}
)

// effects are the fields of failCommand that determine what happens to a command.
var effects = []Field{
	{Name: "closeConnection", Type: Bool, Effect: true, Doc: "closes the connection instead of a reply"},
	{Name: "errorCode", Type: Integer, Effect: true, Doc: "the error's code"},
	{Name: "errorLabels", Type: Texts, Since: "4.4", Needs: []string{"errorCode", "writeConcernError"},
		Doc: "the error's labels, in place of those that the server adds"},
	{Name: "errorExtraInfo", Type: Object, Since: "4.4", Needs: []string{"errorCode"}, Doc: "more fields of the error"},
	{Name: "blockConnection", Type: Bool, Since: "4.2.9", Effect: true, Doc: "delays the command by blockTimeMS"},
	{Name: "blockTimeMS", Type: Integer, Since: "4.2.9", Needs: []string{"blockConnection"},
		Doc: "the delay in milliseconds"},
	{Name: "writeConcernError", Type: Object, Effect: true, Doc: "runs the command and adds this to the reply of a write"},
}

var points = []Point{
	{Name: "failCommand", Since: "4.0", Doc: "fails commands before they run", Requires: "failCommands",
		Fields: append([]Field{failCommands, appName, namespace,
			{Name: "threadName", Type: Text, Since: "4.2", Doc: "affects only the connection with this thread"},
			{Name: "failInternalCommands", Type: Bool, Since: "4.0.6", Doc: "affects commands from other servers, too"},
			{Name: "failLocalClients", Type: Bool, Since: "5.0", Doc: "affects commands that a server sends to itself, too"},
			{Name: "failAllCommands", Type: Bool, Since: "6.0", Doc: "affects all commands, in place of failCommands"},
			{Name: "tassert", Type: Bool, Since: "5.0", Doc: "the error is an internal one, which ends test servers"},
		}, effects...)},
	{Name: "onPrimaryTransactionalWrite", Since: "3.6", Acts: true,
		Doc: "closes the connection after a retryable write on a mongod",
		Fields: []Field{
			{Name: "closeConnection", Type: Bool, Doc: "whether to close the connection (default true)"},
			{Name: "failBeforeCommitExceptionCode", Type: Integer, Doc: "undoes the write, with an error of this code"},
		}},
	{Name: "failGetMoreAfterCursorCheckout", Since: "4.4", Acts: true, Doc: "fails a getMore, and closes its cursor",
		Fields: []Field{{Name: "errorCode", Type: Integer, Doc: "the error's code (default 1)"}, appName, namespace}},
	{Name: "failReceivedGetmore", Since: "3.6", Acts: true, Doc: "stops a mongod that gets a getMore"},
	{Name: "failCursorNotFound", Since: "3.6", Acts: true, Doc: "a cursor is not found"},
	{Name: "maxTimeAlwaysTimeOut", Since: "3.6", Acts: true, Doc: "each command with maxTimeMS exceeds it"},
	{Name: "maxTimeNeverTimeOut", Since: "3.6", Acts: true, Doc: "no command exceeds its maxTimeMS"},
	{Name: "stopReplProducer", Since: "3.6", Acts: true, Doc: "a secondary stops reading the oplog"},
	{Name: "failCommandSequence", Doc: "gives each attempt of a command its own failure; only utr has it",
		Requires: "failCommands",
		Fields: []Field{failCommands, appName, namespace,
			{Name: "sequence", Type: Objects, Effect: true,
				Doc: "the failures, in order: documents with the fields of failCommand that say " +
					"what happens, and loseReply"}}},
}

// Element returns the fields of an element of failCommandSequence's sequence.
func Element() []Field {
	return append(slices.Clone(effects), Field{Name: "loseReply", Type: Bool,
		Doc: "runs the command, and closes the connection instead of a reply"})
}

// PointNamed returns a fail point by its name.
func PointNamed(name string) (Point, bool) {
	i := slices.IndexFunc(points, func(p Point) bool { return p.Name == name })
	if i < 0 {
		return Point{}, false
	}
	return points[i], true
}

// PointNames returns the names of all fail points.
func PointNames() (names []string) {
	for _, p := range points {
		names = append(names, p.Name)
	}
	return names
}

package version

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
)

// Features are what differs between versions. The tags name the first and the last release with a feature, and the
// releases between without it. What only one release has comes from recordings. For error codes and names see
// errorcodes.txt and names.txt in embedded/internal/fault, for fields of commands fields.txt in
// embedded/internal/commands.
type Features struct {
	// Connections and replies.
	Hello             bool `since:"4.4"`              // the command hello; a term in the configuration of a replica set
	HelloOK           bool `since:"4.4" except:"4.9"` // isMaster replies helloOk
	TopologyVersion   bool `since:"4.4"`              // in hello and errors; awaitable and streaming hello
	ErrorLabels       bool `since:"4.4"`              // from the server and from fail points
	NoWritesPerformed bool `since:"6.0"`              // the label
	Overload          bool `since:"8.2"`              // the label SystemOverloadedError; the ingress rate limiters
	LimiterLabels     bool `since:"9.0"`              // rejected requests have NoWritesPerformed
	StableAPI         bool `since:"4.9"`              // apiVersion, apiStrict, apiDeprecationErrors
	StableFields      bool `since:"5.0"`              // apiStrict refuses fields
	LoadBalancing     bool `since:"5.0"`              // by a mongos
	QueryCommands     bool `until:"5.0"`              // every command in an OP_QUERY
	RefusesNoop       bool `since:"5.0"`              // closes the connection after an uncompressed OP_COMPRESSED
	AnswersNoDatabase bool `since:"5.0"`              // an error instead of a closed connection for a command without $db
	TagsAsW           bool `since:"6.0"`              // a write concern may have tags
	ExhaustOnMongos   bool `since:"8.0"`              // of getMore, since 7.1
	HitCounts         bool `since:"4.4"`              // getParameter reports the number of hits of a fail point
	CompilerInfo      bool `since:"5.0"`              // buildEnvironment in buildInfo
	SecondaryDelay    bool `since:"5.0"`              // secondaryDelaySecs, before slaveDelay
	ReplyOrder        bool `since:"5.0"`              // the present order of fields, such as writeConcernError before ok
	RetriedStatements bool `since:"6.0"`              // the field retriedStmtIds
	ExplainVersion    bool `since:"5.0"`              // explainVersion and serverParameters
	Acknowledges      bool `since:"5.0"`              // a mongod replies n to a write without write concern
	SilentDrops       bool `since:"5.0" until:"5.0"`  // dropDatabase has an empty reply

	// Errors: their texts, codes and order.
	IDL               bool `since:"5.0"`             // the texts about wrong fields are the same for all commands
	NullLists         bool `since:"5.0" until:"5.3"` // null for a list of documents is an error
	CommentText       bool `until:"4.2"`             // a comment must be a string
	FindNames         bool `until:"5.0"`             // find has a text of its own about an invalid name
	PrimaryTerms      bool `since:"4.9"`             // "primary", not "master", for clients with helloOk
	NewTerms          bool `since:"5.0"`             // "hello" and "primary" in some texts, whatever the client has sent
	MongosTexts       bool `since:"6.0"`             // a mongos reports unknown commands like a mongod
	MechanismCode     bool `since:"5.0"`             // MechanismUnavailable instead of BadValue
	ParameterCode     bool `since:"5.1"`             // an error code for getParameter of an unknown parameter
	NegativeCode      bool `since:"6.0"`             // a code of its own for a negative maxTimeMS
	ScaleCode         bool `except:"5.0"`            // an error code for a wrong scale of dbStats
	APIAdvice         bool `since:"6.0"`             // errors about apiStrict say where to read about it
	ViaText           bool `since:"6.0"`             // "Failing command via" a fail point
	ErrorContext      bool `since:"5.0"`             // errors of plans say in which command they occurred
	NamedWriteErrors  bool `until:"5.0"`             // write errors of a mongos have codeName
	NamespaceExists   bool `since:"5.1"`             // one text for all collections and views that exist
	TransactionErrors bool `since:"5.0"`             // what transactions refuse, in which order, with which texts

	// Data.
	DollarFields   bool `since:"5.0"`             // names of fields may begin with $; operators of updates may be empty
	Namespaces     bool `since:"5.0"`             // checks of system collections and of names that are not collections
	GetMoreLimits  bool `since:"5.0"`             // maxTimeMS 0 in a getMore is a limit
	AwaitLimits    bool `except:"4.4 4.9"`        // only getMores that await data may have a limit
	TailPositions  bool `since:"5.0"`             // a tailable cursor ends if its position is lost
	CappedRemoval  bool `since:"5.0"`             // documents of capped collections may be removed
	CappedSizes    bool `until:"5.0"`             // updates must not change the size of a document of a capped collection
	SlotEngine     bool `since:"5.0" until:"5.0"` // finds compare documents otherwise and do not know their end
	ConfigConcern  bool `since:"5.0" until:"5.0"` // a mongos adds a write concern to writes of transactions on admin
	ForwardsOut    bool `since:"5.0"`             // a secondary forwards the writes of $out and $merge
	IndexOptions   bool `since:"5.0"`             // indexes that differ in unique, sparse or the filter are different
	TimeSeries     bool `since:"5.0"`             // listCollections shows buckets
	FirstViews     bool `since:"5.0" until:"5.0"` // time series are listed as views
	Clustered      bool `since:"6.0"`             // collections with a clustered index
	DropsMissing   bool `since:"7.0"`             // drop of a missing collection succeeds
	LongSizes      bool `since:"5.0"`             // sizes of databases are longs
	ShardedUUID    bool `until:"4.9"`             // shardCollection replies a UUID
	ResultLists    bool `until:"4.9"`             // a mongos replies result to listCollections of a missing database
	BucketRounding bool `since:"7.0"`             // options of time series need each other
	WallTime       bool `since:"6.0"`             // in change events
	NSType         bool `since:"8.1"`             // in change events
}

// features are the features of each wire version.
var features = sync.OnceValue(func() (all []Features) {
	for wire := range slices.Max(slices.Collect(maps.Values(wires))) + 1 {
		all = append(all, withFeatures(wire))
	}
	return all
})

func withFeatures(wire int) (f Features) {
	v := reflect.ValueOf(&f).Elem()
	for i := range v.NumField() {
		tag := v.Type().Field(i).Tag
		has := Range{tag.Get("since"), tag.Get("until")}.Has(wire)
		for without := range strings.FieldsSeq(tag.Get("except")) {
			has = has && wire != wires[without]
		}
		v.Field(i).SetBool(has)
	}
	return f
}

// Of returns the features of a wire version. It need not belong to a release that is listed here. Wire version 0 is the
// latest.
func Of(wire int) Features { return features()[max(0, min(wire, len(features())-1))] }

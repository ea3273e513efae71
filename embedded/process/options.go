package process

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
	"gopkg.in/yaml.v3"

	"github.com/unified-test-runner/utr/embedded/server"
)

// EnvVersion names the server version that is played, unless the option
// --utrServerVersion does.
const EnvVersion = "UTR_SERVER_VERSION"

// Options are what a mongod or mongos was told, read and checked.
type Options struct {
	Mongos  bool
	Profile server.Profile

	Help, Version, Fork, Repair bool

	Port          int
	Bind          []string // hosts to listen on
	IPv6          bool
	BalancedPort  int // of loadBalancerPort, 0 for none
	DBPath        string
	LogPath       string
	LogAppend     bool
	Verbosity     int
	SlowMS        int
	PIDFile       string
	ReplSet       string
	ConfigServer  bool
	ConfigDB      string // set/host,host of a mongos
	AccessControl bool
	NoScripting   bool
	TLS           TLSOptions

	// Parameters do something here; Inert ones are only told.
	Parameters, Inert bson.D

	Arguments []string // the whole command line
	Parsed    bson.D   // as getCmdLineOpts tells it
}

// TLSOptions are those of a server that speaks TLS, if Mode is not "".
type TLSOptions struct {
	Mode            string // "", "allow", "prefer", "require"
	CertificateFile string
	Password        string
	CAFile          string
	// Weak lets clients in that have no certificate, Invalid those whose
	// certificate is not to be trusted.
	Weak, Invalid bool
}

// maxPort is the last port that there is.
const maxPort = 65535

// Parse reads the command line of mongod or mongos, and the configuration file
// that it names. version is the one played if the command line does not say. An
// error is a *UsageError, in mongod's words.
func Parse(mongos bool, words []string, version string) (*Options, error) {
	p := program{"mongod", onMongod}
	if mongos {
		p = program{"mongos", onMongos}
	}
	given, err := p.commandLine(words)
	if err != nil {
		return nil, err
	}
	if path := given.text("config"); path != "" {
		file, err := p.file(path)
		if err != nil {
			return nil, err
		}
		given.under(file)
	}
	o := &Options{Mongos: mongos, Arguments: append([]string{p.name}, words...)}
	if v := given.text("utrServerVersion"); v != "" {
		version = v
	}
	if o.Profile, err = server.ProfileNamed(version); err != nil {
		return nil, wrong("%s", err)
	}
	o.Help, o.Version, o.Fork, o.Repair = given.on("help"), given.on("version"), given.on("fork"), given.on("repair")
	o.DBPath, o.LogPath, o.PIDFile = given.text("dbpath"), given.text("logpath"), given.text("pidfilepath")
	o.LogAppend, o.SlowMS = given.on("logappend"), given.number(100, "slowms")
	for _, v := range given["verbose"] {
		o.Verbosity += max(len(v)*b2i(isLevel(v)), atoi(v))
	}
	o.ReplSet, _, _ = strings.Cut(given.text("replSet"), "/")
	o.ConfigServer, o.ConfigDB = given.on("configsvr"), given.text("configdb")
	o.AccessControl = given.on("auth", "keyFile", "clusterAuthMode") && !given.on("noauth")
	o.NoScripting = given.on("noscripting")
	for _, step := range []func(arguments) error{o.network, o.tls, o.parameters, o.check} {
		if err := step(given); err != nil {
			return nil, err
		}
	}
	o.Parsed = p.parsed(given)
	return o, nil
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (o *Options) network(given arguments) error {
	o.Port = server.DefaultPort
	switch {
	case given.on("shardsvr"):
		o.Port++
	case o.ConfigServer:
		o.Port += 2
	}
	if o.Port = given.number(o.Port, "port"); o.Port < 0 || o.Port > maxPort {
		return wrong("BadValue: bad --port number")
	}
	for _, hosts := range given["bind_ip"] {
		for _, h := range strings.Split(hosts, ",") {
			if h = strings.TrimSpace(h); h == "*" {
				o.Bind = append(o.Bind, "0.0.0.0")
			} else if h != "" {
				o.Bind = append(o.Bind, h)
			}
		}
	}
	o.IPv6 = given.on("ipv6")
	if given.on("bind_ip_all") {
		if len(given["bind_ip"]) > 0 {
			return wrong("BadValue: Can't specify both bind_ip and bind_ip_all")
		}
		if o.Bind = []string{"0.0.0.0"}; o.IPv6 {
			o.Bind = append(o.Bind, "::")
		}
	}
	if len(o.Bind) == 0 {
		o.Bind = []string{"localhost"}
	}
	return nil
}

// tlsModes by their spellings.
var tlsModes = map[string]string{
	"disabled": "", "allowTLS": "allow", "preferTLS": "prefer", "requireTLS": "require",
	"allowSSL": "allow", "preferSSL": "prefer", "requireSSL": "require",
}

func (o *Options) tls(given arguments) error {
	mode := given.text("tlsMode", "sslMode")
	if mode == "" && given.on("sslOnNormalPorts", "tlsOnNormalPorts", "ssl") {
		mode = "requireTLS"
	}
	var ok bool
	if o.TLS.Mode, ok = tlsModes[mode]; !ok && mode != "" {
		return wrong("BadValue: unsupported value for tlsMode %s", mode)
	}
	o.TLS.CertificateFile = given.text("tlsCertificateKeyFile", "sslPEMKeyFile")
	o.TLS.Password = given.text("tlsCertificateKeyFilePassword", "sslPEMKeyPassword")
	o.TLS.CAFile = given.text("tlsCAFile", "sslCAFile")
	o.TLS.Weak = given.on("tlsAllowConnectionsWithoutCertificates", "sslAllowConnectionsWithoutCertificates", "sslWeakCertificateValidation")
	o.TLS.Invalid = given.on("tlsAllowInvalidCertificates", "sslAllowInvalidCertificates")
	if o.TLS.Mode == "" && o.TLS.CertificateFile != "" && mode == "" {
		return wrong("BadValue: need to enable TLS via the sslMode/tlsMode flag when using TLS configuration parameters")
	}
	if o.TLS.Mode != "" && o.TLS.CertificateFile == "" {
		return wrong("BadValue: need tlsCertificateKeyFile or certificateSelector when TLS is enabled")
	}
	return nil
}

// parameters sorts what --setParameter sets.
func (o *Options) parameters(given arguments) error {
	for _, pair := range given["setParameter"] {
		name, text, _ := strings.Cut(pair, "=")
		e := bson.E{Key: name, Value: parameterValue(text)}
		switch {
		case name == "loadBalancerPort" && o.Mongos:
			if o.BalancedPort = atoi(text); o.BalancedPort < 1 || o.BalancedPort > maxPort {
				return wrong("BadValue: Invalid value for parameter loadBalancerPort: %s", text)
			}
			o.Inert = replace(o.Inert, e)
		case server.KnownParameter(o.Profile, o.Mongos, name):
			o.Parameters = replace(o.Parameters, e)
		case slices.Contains(inertParameters, name), strings.HasPrefix(name, "featureFlag"), strings.HasPrefix(name, "failpoint."):
			o.Inert = replace(o.Inert, e)
		default:
			return wrong("BadValue: Unknown --setParameter '%s'", name)
		}
	}
	return nil
}

func replace(list bson.D, e bson.E) bson.D {
	list = slices.DeleteFunc(list, func(old bson.E) bool { return old.Key == e.Key })
	return append(list, e)
}

// parameterValue is a switch, a number or a document if the text reads as one.
func parameterValue(text string) any {
	var doc bson.D
	if bson.UnmarshalExtJSON([]byte(`{"value": `+text+`}`), false, &doc) == nil && len(doc) == 1 {
		return doc[0].Value
	}
	return text
}

// storageEngines that were there once.
var storageEngines = []string{"wiredTiger", "inMemory", "mmapv1", "ephemeralForTest", "devnull", "rocksdb"}

func (o *Options) check(given arguments) error {
	engine := given.text("storageEngine")
	switch {
	case o.Mongos && o.ConfigDB == "" && !o.Help && !o.Version:
		return wrong("BadValue: Config server not specified. Use --configdb <configReplSetName>/<cfgsvr1>,<cfgsvr2>...")
	case o.Mongos && o.ConfigDB != "" && !strings.Contains(o.ConfigDB, "/"):
		return wrong("FailedToParse: mirrored config server connections are not supported; for config server replica sets be sure to use the replica set connection string")
	case o.Fork && o.LogPath == "" && !given.on("syslog"):
		return wrong("BadValue: --fork has to be used with --logpath or --syslog")
	case engine != "" && !slices.Contains(storageEngines, engine):
		return wrong("Location18656: Cannot start server with an unknown storage engine: %s", engine)
	case o.ConfigServer && given.on("shardsvr"):
		return wrong("BadValue: --shardsvr and --configsvr are mutually exclusive")
	case given.on("auth") && given.on("noauth"):
		return wrong("BadValue: Can't use both --auth and --noauth")
	case given.on("journal", "dur") && given.on("nojournal", "nodur"):
		return wrong("BadValue: Can't specify both --journal and --nojournal options.")
	}
	return nil
}

// parsed is what getCmdLineOpts tells: what was given, by its path.
func (p program) parsed(given arguments) bson.D {
	out := bson.D{}
	for i := range optionTable {
		o := &optionTable[i]
		values, ok := given[o.name]
		if !ok || o.where&p.where == 0 || o.name == "utrServerVersion" {
			continue
		}
		path := o.path
		if path == "" {
			path = o.name
		}
		var value any
		switch {
		case o.name == "tlsCertificateKeyFilePassword" || o.name == "sslPEMKeyPassword" || strings.HasSuffix(o.name, "ClusterPassword"):
			value = "<password>"
		case o.constant == "true" || o.constant == "false":
			value = o.constant == "true"
		case o.constant != "":
			value = o.constant
		case o.kind == toggle:
			value = true
		case o.kind == number:
			value = int32(atoi(values[0]))
		case o.kind == level:
			value = int32(len(strings.Join(values, "")))
		case o.kind == pairs:
			set := bson.D{}
			for _, pair := range values {
				name, text, _ := strings.Cut(pair, "=")
				set = replace(set, bson.E{Key: name, Value: text})
			}
			value = set
		default:
			value = strings.Join(values, ",")
		}
		out = put(out, strings.Split(path, "."), value)
	}
	return out
}

// put sets a value at a path.
func put(doc bson.D, path []string, value any) bson.D {
	i := slices.IndexFunc(doc, func(e bson.E) bool { return e.Key == path[0] })
	if i < 0 {
		doc = append(doc, bson.E{Key: path[0]})
		i = len(doc) - 1
	}
	if len(path) == 1 {
		doc[i].Value = value
		return doc
	}
	inner, _ := doc[i].Value.(bson.D)
	doc[i].Value = put(inner, path[1:], value)
	return doc
}

// asJSON writes a part of a YAML file as JSON.
func asJSON(n *yaml.Node) (string, error) {
	var v any
	if err := n.Decode(&v); err != nil {
		return "", err
	}
	data, err := json.Marshal(v)
	return string(data), err
}

// VersionText is what --version prints.
func (o *Options) VersionText() string {
	name := "db version"
	if o.Mongos {
		name = "mongos version"
	}
	v := o.Profile.Text()
	return fmt.Sprintf("%s v%s\nBuild Info: {\n    \"version\": \"%s\",\n    \"gitVersion\": \"nogitversion\",\n    \"modules\": [],\n"+
		"    \"allocator\": \"system\",\n    \"environment\": {\n        \"distmod\": \"utr\"\n    }\n}\n", name, v, v)
}

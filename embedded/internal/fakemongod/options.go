package main

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/fakemongod/cmdline"
	"github.com/unified-test-runner/utr/embedded/internal/server"
	"github.com/unified-test-runner/utr/embedded/internal/value"
	"github.com/unified-test-runner/utr/embedded/internal/version"
)

// EnvVersion is the environment variable with the default of --utrServerVersion.
const EnvVersion = "UTR_SERVER_VERSION"

// Options are the options of a mongod or mongos, from the command line and the configuration file.
type Options struct {
	Mongos     bool `json:"router"`
	Version    *version.Version
	Print      string   // what --help or --version print before the process exits
	Arguments  []string // the complete command line
	Parameters []string // NAME=VALUE, from --setParameter
	PID        int      // of the process

	Port         int
	Bind         []string // hosts to listen on
	BalancedPort int      // parameter loadBalancerPort; 0 if not set
	DBPath       string
	LogPath      string
	ReplSet      string
	ConfigServer bool
	ConfigDB     string // set/host,host; only mongos

	// AccessControl requires clients to authenticate.
	AccessControl bool
	TLS           TLSOptions
}

// TLSOptions are the TLS options of a server.
type TLSOptions struct {
	Mode            string // requireTLS, preferTLS, allowTLS or the same with SSL; "" without TLS
	CertificateFile string
	CAFile          string
	AllowNone       bool // accept clients without a certificate
	AllowInvalid    bool // accept certificates that the CA has not signed
}

// These options are accepted, because mongo-orchestration and deployment/internal/local pass them, but do not affect
// clients.
var (
	ignoredSwitches = []string{"v", "vv", "vvv", "quiet", "logappend", "ipv6", "nounixsocket", "journal", "nojournal",
		"directoryperdb",
		"noprealloc", "smallfiles", "enableMajorityReadConcern"}
	ignoredSettings = []string{"verbose", "oplogSize", "storageEngine", "wiredTigerCacheSizeGB",
		"networkMessageCompressors", "nssize"}
)

// Parse parses the command line of mongod or mongos, and its configuration file of lines NAME = VALUE. reported is the
// default of --utrServerVersion.
func Parse(mongos bool, words []string, reported string) (*Options, error) {
	name, versionOf := "mongod", "db" // other programs read the version from this text
	if mongos {
		name, versionOf = "mongos", "mongos"
	}
	o := &Options{Mongos: mongos, PID: os.Getpid(), Arguments: append([]string{name}, words...)}
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	var config, keyFile, bind, clusterAuth string
	var shard, auth, tlsOn, printVersion bool
	flags.StringVar(&reported, "utrServerVersion", reported, "server version to emulate")
	flags.BoolVar(&printVersion, "version", false, "print the version")
	flags.StringVar(&config, "config", "", "file of options, each a line NAME = VALUE")
	flags.IntVar(&o.Port, "port", 0, "port to listen on")
	flags.StringVar(&bind, "bind_ip", "localhost", "addresses to listen on, separated by commas")
	flags.StringVar(&o.LogPath, "logpath", "", "file to append the log to, instead of standard output")
	flags.StringVar(&keyFile, "keyFile", "", "enables access control")
	flags.StringVar(&clusterAuth, "clusterAuthMode", "", "enables access control")
	flags.Func("setParameter", "server parameter, as NAME=VALUE",
		func(p string) error { o.Parameters = append(o.Parameters, p); return nil })
	if mongos {
		flags.StringVar(&o.ConfigDB, "configdb", "", "config servers, as SET/HOST:PORT,HOST:PORT")
	} else {
		flags.BoolVar(&auth, "auth", false, "enables access control")
		flags.StringVar(&o.DBPath, "dbpath", "", "folder; deleting it discards the data")
		flags.StringVar(&o.ReplSet, "replSet", "", "name of the replica set")
		flags.BoolVar(&o.ConfigServer, "configsvr", false, "config server; changes the default port")
		flags.BoolVar(&shard, "shardsvr", false, "shard server; changes the default port")
	}
	for _, prefix := range []string{"tls", "ssl"} {
		flags.StringVar(&o.TLS.Mode, prefix+"Mode", "", "requireTLS, preferTLS, allowTLS or disabled")
		flags.BoolVar(&tlsOn, prefix+"OnNormalPorts", false, "the same as --tlsMode requireTLS")
		flags.StringVar(&o.TLS.CAFile, prefix+"CAFile", "", "CA certificates for clients")
		flags.BoolVar(&o.TLS.AllowInvalid, prefix+"AllowInvalidCertificates", false,
			"accept certificates that the CA has not signed")
		flags.BoolVar(&o.TLS.AllowNone, prefix+"AllowConnectionsWithoutCertificates", false,
			"accept clients without a certificate")
	}
	flags.StringVar(&o.TLS.CertificateFile, "tlsCertificateKeyFile", "", "certificate of the server, with its key")
	flags.StringVar(&o.TLS.CertificateFile, "sslPEMKeyFile", "", "the same as --tlsCertificateKeyFile")
	flags.BoolVar(&o.TLS.AllowNone, "sslWeakCertificateValidation", false, "accept clients without a certificate")
	for _, name := range ignoredSwitches {
		flags.Bool(name, false, "has no effect")
	}
	for _, name := range ignoredSettings {
		flags.String(name, "", "has no effect")
	}

	err := flags.Parse(words)
	if errors.Is(err, flag.ErrHelp) {
		var text strings.Builder
		fmt.Fprintf(&text, "usage: %s [OPTIONS]\n", name)
		flags.SetOutput(&text)
		flags.PrintDefaults()
		return &Options{Print: text.String()}, nil
	}
	if err == nil && config != "" {
		err = readFile(flags, config)
		_ = flags.Parse(words) // again, because the command line takes precedence over the file
	}
	if err != nil {
		return nil, err
	}
	if tlsOn && o.TLS.Mode == "" {
		o.TLS.Mode = "requireTLS"
	}
	if o.TLS.Mode == "disabled" {
		o.TLS.Mode = ""
	}
	defaultPort := server.DefaultPort
	switch {
	case shard:
		defaultPort++
	case o.ConfigServer:
		defaultPort += 2
	}
	if o.DBPath != "" {
		o.DBPath, _ = filepath.Abs(o.DBPath)
	}
	o.Port = cmp.Or(o.Port, defaultPort)
	o.Bind = strings.Split(bind, ",")
	o.AccessControl = auth || keyFile != "" || clusterAuth != ""
	if o.Version, err = version.Named(reported); err != nil {
		return nil, err
	}
	if printVersion {
		o.Print = fmt.Sprintf("%s version v%s, emulated by utr", versionOf, o.Version.Text())
		return o, nil
	}
	return o, o.check(flags.Args())
}

// readFile reads a configuration file. Values may contain "=", as in "setParameter = a=1".
func readFile(flags *flag.FlagSet, path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("cannot read the configuration file: %w", err)
	}
	for line := range strings.Lines(string(data)) {
		line, _, _ = strings.Cut(line, "#")
		name, value, isSetting := strings.Cut(strings.TrimSpace(line), "=")
		if name == "" {
			continue
		}
		if !isSetting {
			return fmt.Errorf("%s: %q is not of the form NAME = VALUE", path, name)
		}
		if err := flags.Set(strings.TrimSpace(name), strings.TrimSpace(value)); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return nil
}

// check reads the port for load balancers, and rejects missing and contradictory options.
func (o *Options) check(extra []string) (err error) {
	for _, p := range o.Parameters {
		if port, ok := strings.CutPrefix(p, "loadBalancerPort="); ok && o.Mongos {
			if o.BalancedPort, err = strconv.Atoi(port); err != nil || o.BalancedPort <= 0 {
				return errors.New("loadBalancerPort must be the number of a port")
			}
		}
	}
	set, hosts, _ := strings.Cut(o.ConfigDB, "/")
	switch {
	case len(extra) > 0:
		return fmt.Errorf("unexpected argument %q", extra[0])
	case o.Mongos && (set == "" || hosts == ""):
		return errors.New("--configdb SET/HOST:PORT is required")
	case o.TLS.Mode != "" && o.TLS.CertificateFile == "":
		return errors.New("TLS requires --tlsCertificateKeyFile")
	}
	return nil
}

// config loads the certificates. It returns nil without TLS.
func (o TLSOptions) config() (*tls.Config, error) {
	if o.Mode == "" {
		return nil, nil
	}
	certificate, err := tls.LoadX509KeyPair(o.CertificateFile, o.CertificateFile)
	if err != nil {
		return nil, fmt.Errorf("cannot use the certificate file: %w", err)
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{certificate}}
	if o.CAFile == "" {
		return c, nil
	}
	authority, err := os.ReadFile(o.CAFile)
	if err != nil {
		return nil, fmt.Errorf("cannot read the CA file: %w", err)
	}
	c.ClientCAs = x509.NewCertPool()
	if !c.ClientCAs.AppendCertsFromPEM(authority) {
		return nil, fmt.Errorf("the CA file %s contains no certificate", o.CAFile)
	}
	switch {
	case o.AllowInvalid && o.AllowNone:
		c.ClientAuth = tls.RequestClientCert
	case o.AllowInvalid:
		c.ClientAuth = tls.RequireAnyClientCert
	case o.AllowNone:
		c.ClientAuth = tls.VerifyClientCertIfGiven
	default:
		c.ClientAuth = tls.RequireAndVerifyClientCert
	}
	return c, nil
}

// process returns the startup options of a server. Parameters that its version does not have are ignored.
func (o *Options) process(v *version.Version) server.Process {
	known, _ := server.Parameters(v, server.Process{})
	set := slices.DeleteFunc(parameters(o.Parameters), func(e bson.E) bool { return !value.Has(known, e.Key) })
	return server.Process{Parameters: set, AccessControl: o.AccessControl,
		Arguments: o.Arguments, Settings: cmdline.Parsed(o.Arguments), PID: o.PID}
}

// stateFile returns the path of the state file, "" without dbpath. While it exists, the process may restart.
func (o *Options) stateFile() string {
	if o.DBPath == "" {
		return ""
	}
	return filepath.Join(o.DBPath, "utr-host.json")
}

// parameters parses NAME=VALUE. Values that are JSON have their type: true, 1 and {"a": 1} are a boolean, a number and
// a document. Other values are strings.
func parameters(list []string) bson.D {
	var out bson.D
	for _, pair := range list {
		name, text, _ := strings.Cut(pair, "=")
		e := bson.E{Key: name, Value: text}
		var doc bson.D
		if bson.UnmarshalExtJSON([]byte(`{"value": `+text+`}`), false, &doc) == nil && len(doc) == 1 {
			e.Value = doc[0].Value
		}
		out = append(out, e)
	}
	return out
}

package process

import (
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/server"
)

// EnvVersion names the environment variable with the server version to imitate,
// unless the option --utrServerVersion names one.
const EnvVersion = "UTR_SERVER_VERSION"

// Options are the command line and the configuration file of a mongod or mongos.
// A field that the program does not have is zero.
type Options struct {
	Mongos     bool
	Profile    server.Profile
	Text       string   // what to print instead of serving, if the command line asks for help or the version
	Arguments  []string // the whole command line
	Parameters []string // NAME=VALUE, as given by --setParameter

	Port         int
	Bind         []string // hosts to listen on
	BalancedPort int      // parameter loadBalancerPort; 0 for none
	DBPath       string
	LogPath      string
	ReplSet      string
	ConfigServer bool
	ConfigDB     string // set/host,host of a mongos

	// AccessControl requires clients to authenticate.
	AccessControl bool
	// TLSMode is requireTLS, preferTLS, allowTLS or the same with SSL; "" for no TLS.
	TLSMode         string
	CertificateFile string
}

// Ignored options have no effect here, as they change nothing that a client sees.
// mongo-orchestration and deployment/local pass them.
var (
	ignoredSwitches = []string{"v", "vv", "vvv", "quiet", "logappend", "ipv6", "nounixsocket", "journal", "nojournal", "directoryperdb",
		"noprealloc", "smallfiles", "enableMajorityReadConcern", "shardsvr", "sslWeakCertificateValidation",
		"tlsAllowInvalidCertificates", "sslAllowInvalidCertificates",
		"tlsAllowConnectionsWithoutCertificates", "sslAllowConnectionsWithoutCertificates"}
	ignoredSettings = []string{"verbose", "oplogSize", "storageEngine", "wiredTigerCacheSizeGB", "networkMessageCompressors", "nssize",
		"tlsCAFile", "sslCAFile"}
)

// Parse reads the command line of mongod or mongos, and the configuration file
// that it names, in which each line is NAME = VALUE. version is the server version
// to imitate if the command line names none; "" is the default.
func Parse(mongos bool, words []string, version string) (*Options, error) {
	name := map[bool]string{false: "mongod", true: "mongos"}[mongos]
	o := &Options{Mongos: mongos, Arguments: append([]string{name}, words...)}
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	var config, keyFile, bind, clusterAuth string
	var auth, tlsOn, showVersion bool
	flags.StringVar(&version, "utrServerVersion", version, "server version to imitate")
	flags.BoolVar(&showVersion, "version", false, "print the version")
	flags.StringVar(&config, "config", "", "file of options, each a line NAME = VALUE")
	flags.IntVar(&o.Port, "port", server.DefaultPort, "port to listen on")
	flags.StringVar(&bind, "bind_ip", "localhost", "addresses to listen on, separated by commas")
	flags.StringVar(&o.LogPath, "logpath", "", "file to append the log to, instead of the standard output")
	flags.StringVar(&keyFile, "keyFile", "", "switches access control on")
	flags.StringVar(&clusterAuth, "clusterAuthMode", "", "switches access control on")
	flags.Func("setParameter", "server parameter, as NAME=VALUE", func(pair string) error {
		o.Parameters = append(o.Parameters, pair)
		return nil
	})
	if mongos {
		flags.StringVar(&o.ConfigDB, "configdb", "", "config servers, as SET/HOST:PORT,HOST:PORT")
	} else {
		flags.BoolVar(&auth, "auth", false, "switches access control on")
		flags.StringVar(&o.DBPath, "dbpath", "", "folder that exists as long as the data are to be kept")
		flags.StringVar(&o.ReplSet, "replSet", "", "name of the replica set to wait for")
		flags.BoolVar(&o.ConfigServer, "configsvr", false, "be a config server")
	}
	for _, prefix := range []string{"tls", "ssl"} {
		flags.StringVar(&o.TLSMode, prefix+"Mode", "", "requireTLS, preferTLS, allowTLS or disabled")
		flags.BoolVar(&tlsOn, prefix+"OnNormalPorts", false, "the same as --tlsMode requireTLS")
	}
	flags.StringVar(&o.CertificateFile, "tlsCertificateKeyFile", "", "certificate of the server, with its key")
	flags.StringVar(&o.CertificateFile, "sslPEMKeyFile", "", "the same as --tlsCertificateKeyFile")
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
		return &Options{Text: text.String()}, nil
	}
	if err == nil && config != "" {
		err = readFile(flags, config)
		_ = flags.Parse(words) // as before: the command line takes precedence over the file
	}
	if err != nil {
		return nil, err
	}
	if tlsOn && o.TLSMode == "" {
		o.TLSMode = "requireTLS"
	}
	if o.TLSMode == "disabled" {
		o.TLSMode = ""
	}
	o.Bind = strings.Split(bind, ",")
	o.AccessControl = auth || keyFile != "" || clusterAuth != ""
	if o.Profile, err = server.ProfileNamed(version); err != nil {
		return nil, err
	}
	if showVersion { // other programs look for the number
		of := map[bool]string{false: "db", true: "mongos"}[mongos]
		o.Text = fmt.Sprintf("%s version v%s, imitated by utr", of, o.Profile.Text())
		return o, nil
	}
	return o, o.check(flags.Args())
}

// readFile reads a configuration file. "setParameter = a=1" sets the parameter a.
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

// check refuses what no process can be started with, and finds the port for load balancers.
func (o *Options) check(extra []string) (err error) {
	set, hosts, _ := strings.Cut(o.ConfigDB, "/")
	switch {
	case len(extra) > 0:
		return fmt.Errorf("unexpected argument %q", extra[0])
	case o.Mongos && (set == "" || hosts == ""):
		return errors.New("--configdb SET/HOST:PORT is required")
	case o.TLSMode != "" && o.CertificateFile == "":
		return errors.New("TLS requires --tlsCertificateKeyFile")
	}
	for _, p := range o.Parameters {
		if port, ok := strings.CutPrefix(p, "loadBalancerPort="); ok && o.Mongos {
			if o.BalancedPort, err = strconv.Atoi(port); err != nil {
				return errors.New("loadBalancerPort must be the number of a port")
			}
		}
	}
	return nil
}

// tlsConfig has the certificate of a server. It is nil without TLS. Clients need no certificate.
func (o *Options) tlsConfig() (*tls.Config, error) {
	if o.TLSMode == "" {
		return nil, nil
	}
	certificate, err := tls.LoadX509KeyPair(o.CertificateFile, o.CertificateFile)
	if err != nil {
		return nil, fmt.Errorf("cannot use the certificate file: %w", err)
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{certificate}}, nil
}

// parameters gives the values of NAME=VALUE the types that they have as JSON:
// true, 1 and {"a": 1} are a switch, a number and a document; other values are
// strings.
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

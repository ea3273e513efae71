package local

import (
	"os"
	"runtime"
	"strconv"
)

// Place is what is known of a process only when it is started.
type Place struct {
	Port         int
	BalancerPort int    // of a Process that is Balanced
	Data         string // folder of a mongod
	ConfigDB     string // config servers of a mongos, as set/host:port
	KeyFile      string // with Shape.Auth
	Certificate  string // with Shape.TLS: certificate and key
	CA           string // with Shape.TLS: what is trusted
}

// address is where everything listens.
const address = "127.0.0.1"

// balancedFrom is the version whose mongos takes connections of a load
// balancer (SERVER-60679). Before 6.1 that is to be switched on (SERVER-64205).
var (
	balancedFrom   = Version{5, 0, 7}
	balancedAlways = Version{6, 1, 0}
)

// option is an argument, or a few, of the processes that it is for, from one
// version on and until before another one.
type option struct {
	roles       Role
	from, until Version // zero: always
	// args have values of Argv in the place of $NAME. If one of these has no
	// value, the option is left out; needs is one that stands in no argument.
	args   []string
	needs  string
	reason string
}

// optionTable is the table, in the order of the arguments. Left out on purpose:
// --nojournal, which replica sets refuse and which 6.1 dropped, and which would
// make a standalone refuse a write concern with j; --logpath, since what a
// server says before it has opened its log would be elsewhere; short election
// time-outs, since a busy machine would elect all the time.
func optionTable() []option {
	const inSets = RoleMember | RoleConfig | RoleShard
	parameter := func(text string) []string { return []string{"--setParameter", text} }
	return []option{
		{roles: anyRole, args: []string{"--port", "$PORT"}, reason: "chosen by us"},
		{roles: anyRole, args: []string{"--bind_ip", address}, reason: "nobody else has a business here"},
		{roles: anyRole, args: []string{"--nounixsocket"}, needs: "$UNIX",
			reason: "a killed server would leave its socket in the folder for temporary files"},
		{roles: anyRole, args: parameter("enableTestCommands=1"), reason: "fail points"},
		{roles: anyRole, args: parameter("diagnosticDataCollectionEnabled=false"), reason: "nobody reads what is collected each second"},
		{roles: mongods, args: []string{"--dbpath", "$DATA"}, reason: "in our folder"},
		{roles: mongods, args: []string{"--wiredTigerCacheSizeGB", "0.25"}, reason: "the least; by default each takes half of the memory"},
		{roles: inSets, args: []string{"--replSet", "$SET"}, reason: "transactions and retryable writes need a replica set"},
		{roles: inSets, args: []string{"--oplogSize", "128"}, reason: "in MB; by default 5 % of the disk"},
		{roles: RoleMember | RoleShard, args: parameter("maxTransactionLockRequestTimeoutMillis=25"),
			reason: "a transaction gives up a lock after 5 ms by default, which is little where a collection was made just now"},
		{roles: RoleConfig, args: []string{"--configsvr"}, reason: "its role"},
		{roles: RoleShard, args: []string{"--shardsvr"}, reason: "its role"},
		{roles: RoleConfig | RoleShard, args: parameter("periodicNoopIntervalSecs=1"),
			reason: "a change stream waits for a write on every shard: by default 10 s if nothing is written"},
		{roles: RoleMongos, args: []string{"--configdb", "$CONFIGDB"}, reason: "where the cluster is"},
		{roles: RoleMongos, from: balancedFrom, until: balancedAlways, args: parameter("featureFlagLoadBalancer=true"), needs: "$BALANCER",
			reason: "a load balancer"},
		{roles: RoleMongos, from: balancedFrom, args: parameter("loadBalancerPort=$BALANCER"), reason: "connections there begin with a PROXY header"},
		{roles: anyRole, args: []string{"--keyFile", "$KEYFILE"}, reason: "access control, and the members' password among themselves"},
		{roles: anyRole, args: []string{"--tlsMode", "requireTLS", "--tlsCertificateKeyFile", "$CERTIFICATE", "--tlsCAFile", "$CA",
			"--tlsAllowConnectionsWithoutCertificates"}, reason: "clients show no certificate"},
	}
}

// Argv gives the arguments of a process, without the program's name.
func Argv(p Process, v Version, at Place) (args []string) {
	values := map[string]string{"PORT": strconv.Itoa(at.Port), "SET": p.Set, "DATA": at.Data, "CONFIGDB": at.ConfigDB,
		"KEYFILE": at.KeyFile, "CERTIFICATE": at.Certificate, "CA": at.CA}
	if p.Balanced {
		values["BALANCER"] = strconv.Itoa(at.BalancerPort)
	}
	if runtime.GOOS != "windows" {
		values["UNIX"] = runtime.GOOS
	}
	for _, o := range optionTable() {
		given := o.roles&p.Role != 0 && o.holds(v)
		fill := func(name string) string {
			given = given && values[name] != ""
			return values[name]
		}
		os.Expand(o.needs, fill)
		var filled []string
		for _, arg := range o.args {
			filled = append(filled, os.Expand(arg, fill))
		}
		if given {
			args = append(args, filled...)
		}
	}
	return args
}

// holds reports whether a version has the option.
func (o option) holds(v Version) bool {
	return v.atLeast(o.from) && (o.until == Version{} || !v.atLeast(o.until))
}

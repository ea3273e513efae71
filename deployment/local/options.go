package local

import (
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
	when        func(Process, Place) bool
	args        func(Process, Place) []string
	reason      string
}

func fixed(args ...string) func(Process, Place) []string {
	return func(Process, Place) []string { return args }
}

func balanced(p Process, _ Place) bool { return p.Balanced }

func parameter(name, value string) func(Process, Place) []string {
	return fixed("--setParameter", name+"="+value)
}

// optionTable is the table, in the order of the arguments. Left out on purpose:
// --nojournal, which replica sets refuse and which 6.1 dropped, and which would
// make a standalone refuse a write concern with j; --logpath, since what a
// server says before it has opened its log would be elsewhere; short election
// time-outs, since a busy machine would elect all the time.
func optionTable() []option {
	return []option{
		{roles: anyRole, args: func(_ Process, at Place) []string { return []string{"--port", strconv.Itoa(at.Port)} },
			reason: "chosen by us"},
		{roles: anyRole, args: fixed("--bind_ip", address),
			reason: "nobody else has a business here"},
		{roles: anyRole, when: func(Process, Place) bool { return runtime.GOOS != "windows" }, args: fixed("--nounixsocket"),
			reason: "a killed server would leave its socket in the folder for temporary files"},
		{roles: anyRole, args: parameter("enableTestCommands", "1"),
			reason: "fail points"},
		{roles: anyRole, args: parameter("diagnosticDataCollectionEnabled", "false"),
			reason: "nobody reads what is collected each second"},
		{roles: mongods, args: func(_ Process, at Place) []string { return []string{"--dbpath", at.Data} },
			reason: "in our folder"},
		{roles: mongods, args: fixed("--wiredTigerCacheSizeGB", "0.25"),
			reason: "the least; by default each takes half of the memory"},
		{roles: RoleMember | RoleConfig | RoleShard, args: func(p Process, _ Place) []string { return []string{"--replSet", p.Set} },
			reason: "transactions and retryable writes need a replica set"},
		{roles: RoleMember | RoleConfig | RoleShard, args: fixed("--oplogSize", "128"),
			reason: "in MB; by default 5 % of the disk"},
		{roles: RoleMember | RoleShard, args: parameter("maxTransactionLockRequestTimeoutMillis", "25"),
			reason: "a transaction gives up a lock after 5 ms by default, which is little where a collection was made just now"},
		{roles: RoleConfig, args: fixed("--configsvr"), reason: "its role"},
		{roles: RoleShard, args: fixed("--shardsvr"), reason: "its role"},
		{roles: RoleConfig | RoleShard, args: parameter("periodicNoopIntervalSecs", "1"),
			reason: "a change stream waits for a write on every shard: by default 10 s if nothing is written"},
		{roles: RoleMongos, args: func(_ Process, at Place) []string { return []string{"--configdb", at.ConfigDB} },
			reason: "where the cluster is"},
		{roles: RoleMongos, from: balancedFrom, until: balancedAlways, when: balanced, args: parameter("featureFlagLoadBalancer", "true"),
			reason: "a load balancer"},
		{roles: RoleMongos, from: balancedFrom, when: balanced,
			args: func(_ Process, at Place) []string {
				return []string{"--setParameter", "loadBalancerPort=" + strconv.Itoa(at.BalancerPort)}
			},
			reason: "connections there begin with a PROXY header"},
		{roles: anyRole, when: func(_ Process, at Place) bool { return at.KeyFile != "" },
			args:   func(_ Process, at Place) []string { return []string{"--keyFile", at.KeyFile} },
			reason: "access control, and the members' password among themselves"},
		{roles: anyRole, when: func(_ Process, at Place) bool { return at.Certificate != "" },
			args: func(_ Process, at Place) []string {
				return []string{"--tlsMode", "requireTLS", "--tlsCertificateKeyFile", at.Certificate, "--tlsCAFile", at.CA,
					"--tlsAllowConnectionsWithoutCertificates"}
			},
			reason: "clients show no certificate"},
	}
}

// Argv gives the arguments of a process, without the program's name.
func Argv(p Process, v Version, at Place) []string {
	var args []string
	for _, o := range optionTable() {
		if o.roles&p.Role != 0 && o.holds(v) && (o.when == nil || o.when(p, at)) {
			args = append(args, o.args(p, at)...)
		}
	}
	return args
}

// holds reports whether a version has the option.
func (o option) holds(v Version) bool {
	return v.atLeast(o.from) && (o.until == Version{} || !v.atLeast(o.until))
}

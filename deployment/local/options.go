package local

import (
	"fmt"
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

// Argv gives the arguments of a process, without the program's name. Left out on purpose:
// --nojournal, which replica sets refuse and which 6.1 dropped, and which would
// make a standalone refuse a write concern with j; --logpath, since what a
// server says before it has opened its log would be elsewhere; short election
// time-outs, since a busy machine would elect all the time.
func Argv(p Process, v Version, at Place) (args []string) {
	add := func(given bool, more ...string) {
		if given {
			args = append(args, more...)
		}
	}
	set := func(given bool, parameter string) { add(given, "--setParameter", parameter) }
	isMongod := p.Role != RoleMongos
	isSharded := p.Role == RoleConfig || p.Role == RoleShard
	inSet := p.Role == RoleMember || isSharded
	isBalanced := p.Balanced && v.atLeast(balancedFrom)

	add(true, "--port", strconv.Itoa(at.Port))
	add(true, "--bind_ip", address) // nobody else has a business here
	// A killed server would leave its socket in the folder for temporary files.
	add(runtime.GOOS != "windows", "--nounixsocket")
	set(true, "enableTestCommands=1")                  // fail points
	set(true, "diagnosticDataCollectionEnabled=false") // nobody reads what is collected each second
	add(isMongod, "--dbpath", at.Data)
	add(isMongod, "--wiredTigerCacheSizeGB", "0.25") // the least; by default each takes half of the memory
	add(inSet, "--replSet", p.Set)                   // transactions and retryable writes require a replica set
	add(inSet, "--oplogSize", "128")                 // in MB; by default 5 % of the disk
	// A transaction gives up a lock after 5 ms by default, which is little where a
	// collection was made just now.
	set(p.Role == RoleMember || p.Role == RoleShard, "maxTransactionLockRequestTimeoutMillis=25")
	add(p.Role == RoleConfig, "--configsvr")
	add(p.Role == RoleShard, "--shardsvr")
	// A change stream waits for a write on every shard: by default 10 s if nothing is written.
	set(isSharded, "periodicNoopIntervalSecs=1")
	add(p.Role == RoleMongos, "--configdb", at.ConfigDB)
	set(isBalanced && !v.atLeast(balancedAlways), "featureFlagLoadBalancer=true")
	set(isBalanced, fmt.Sprint("loadBalancerPort=", at.BalancerPort)) // connections there begin with a PROXY header
	add(at.KeyFile != "", "--keyFile", at.KeyFile)                    // access control, and the members' password among themselves
	add(at.CA != "", "--tlsMode", "requireTLS", "--tlsCertificateKeyFile", at.Certificate, "--tlsCAFile", at.CA,
		"--tlsAllowConnectionsWithoutCertificates") // clients show none
	return args
}

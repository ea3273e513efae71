package local

import (
	"fmt"
	"runtime"
	"strconv"
)

// Place is what is decided when a process is started.
type Place struct {
	Port         int
	BalancerPort int    // of a Process that is Balanced
	Data         string // folder of a mongod
	ConfigDB     string // config servers for a mongos, as set/host:port
	KeyFile      string // with Shape.Auth
	Certificate  string // with Shape.TLS: certificate and key
	CA           string // with Shape.TLS: trusted certificate authority
}

// address is the interface that everything listens on.
const address = "127.0.0.1"

// balancedFrom is the first version whose mongos supports load balancers (SERVER-60679). Before balancedAlways, a
// feature flag is required (SERVER-64205).
var (
	balancedFrom   = Version{5, 0, 7}
	balancedAlways = Version{6, 1, 0}
)

// Argv returns the arguments of a process, without the program's name. Some are omitted on purpose:
//   - --nojournal: replica sets reject it, 6.1 removed it, and a standalone would reject write concerns with j.
//   - --logpath: what a server prints before it opens its log would be missing there.
//   - short election timeouts: a busy machine would hold elections all the time.
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

	add(true, "--port", strconv.Itoa(at.Port))
	add(true, "--bind_ip", address) // not reachable from other machines
	// A killed server would leave its socket behind.
	add(runtime.GOOS != "windows", "--nounixsocket")
	set(true, "enableTestCommands=1")                  // fail points
	set(true, "diagnosticDataCollectionEnabled=false") // unused, and written every second
	add(isMongod, "--dbpath", at.Data)
	add(isMongod, "--wiredTigerCacheSizeGB", "0.25") // the minimum; by default each server uses half of the memory
	add(inSet, "--replSet", p.Set)                   // transactions and retryable writes require a replica set
	add(inSet, "--oplogSize", "128")                 // MB; the default is 5 % of the disk
	// By default, a transaction waits 5 ms for a lock. Just after a collection was created, that is too short.
	set(p.Role == RoleMember || p.Role == RoleShard, "maxTransactionLockRequestTimeoutMillis=25")
	add(p.Role == RoleConfig, "--configsvr")
	add(p.Role == RoleShard, "--shardsvr")
	// A change stream waits for an oplog entry on every shard. The default interval of no-ops is 10 s.
	set(isSharded, "periodicNoopIntervalSecs=1")
	add(p.Role == RoleMongos, "--configdb", at.ConfigDB)
	set(p.Balanced && !v.atLeast(balancedAlways), "featureFlagLoadBalancer=true")
	set(p.Balanced, fmt.Sprint("loadBalancerPort=", at.BalancerPort)) // connections to it begin with a PROXY header
	add(at.KeyFile != "", "--keyFile", at.KeyFile)                    // access control, and the servers' internal password
	add(at.CA != "", "--tlsMode", "requireTLS", "--tlsCertificateKeyFile", at.Certificate, "--tlsCAFile", at.CA,
		"--tlsAllowConnectionsWithoutCertificates") // clients have none
	return args
}

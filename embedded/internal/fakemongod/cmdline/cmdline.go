// Package cmdline reads command lines of mongod and mongos as getCmdLineOpts shows them, for tests with the fake mongod
// and with recordings.
package cmdline

import (
	"slices"
	"strconv"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// settings are the settings of a configuration file that options of the command line stand for (MongoDB manual,
// "Configuration File Options"). An option without a value has the one after "=".
var settings = map[string]string{
	"port": "net.port", "bind_ip": "net.bindIp", "ipv6": "net.ipv6=true",
	"networkMessageCompressors": "net.compression.compressors",
	"tlsMode":                   "net.tls.mode", "tlsCertificateKeyFile": "net.tls.certificateKeyFile",
	"tlsCAFile":                              "net.tls.CAFile",
	"tlsAllowInvalidCertificates":            "net.tls.allowInvalidCertificates=true",
	"tlsAllowConnectionsWithoutCertificates": "net.tls.allowConnectionsWithoutCertificates=true",
	"sslMode":                                "net.tls.mode", "sslPEMKeyFile": "net.tls.certificateKeyFile",
	"sslCAFile": "net.tls.CAFile",
	"auth":      "security.authorization=enabled", "keyFile": "security.keyFile",
	"clusterAuthMode": "security.clusterAuthMode",
	"replSet":         "replication.replSet", "oplogSize": "replication.oplogSizeMB", "configdb": "sharding.configDB",
	"configsvr": "sharding.clusterRole=configsvr", "shardsvr": "sharding.clusterRole=shardsvr",
	"dbpath": "storage.dbPath", "directoryperdb": "storage.directoryPerDB=true", "storageEngine": "storage.engine",
	"wiredTigerCacheSizeGB": "storage.wiredTiger.engineConfig.cacheSizeGB",
	"logpath":               "systemLog.path", "logappend": "systemLog.logAppend=true", "quiet": "systemLog.quiet=true",
	"config": "config",
}

// Parsed returns the field parsed of getCmdLineOpts: the settings of a command line, in order of their names.
func Parsed(arguments []string) bson.D {
	out := bson.D{}
	for i, word := range arguments {
		name, value, joined := strings.Cut(strings.TrimLeft(word, "-"), "=")
		path, implied, isSwitch := strings.Cut(settings[name], "=")
		if !strings.HasPrefix(word, "-") || path == "" && name != "setParameter" {
			continue
		}
		switch {
		case isSwitch:
			value = implied
		case !joined && i+1 < len(arguments):
			value = arguments[i+1]
		}
		if name == "setParameter" {
			name, value, _ = strings.Cut(value, "=")
			path = "setParameter." + name
		}
		out = set(out, strings.Split(path, "."), typed(path, value))
		if name == "logpath" {
			out = set(out, []string{"systemLog", "destination"}, "file")
		}
	}
	return out
}

// typed returns the value of a setting, which has the type of the option.
func typed(path, text string) any {
	n, notNumber := strconv.ParseFloat(text, 64)
	switch {
	case text == "true" && !strings.HasPrefix(path, "setParameter."):
		return true
	case notNumber != nil || strings.HasPrefix(path, "setParameter."):
		return text
	case strings.HasSuffix(path, "GB"):
		return n
	}
	return int32(n)
}

// set sets a field in documents whose fields are in order.
func set(doc bson.D, path []string, value any) bson.D {
	i, found := slices.BinarySearchFunc(doc, path[0],
		func(e bson.E, name string) int { return strings.Compare(e.Key, name) })
	if !found {
		doc = slices.Insert(doc, i, bson.E{Key: path[0], Value: bson.D{}})
	}
	if len(path) > 1 {
		inner, _ := doc[i].Value.(bson.D)
		value = set(inner, path[1:], value)
	}
	doc[i].Value = value
	return doc
}

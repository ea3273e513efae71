package specs

import (
	"slices"
	"strings"
)

// uriOptions are the connection options that there are (URI Options; Client
// Side Operations Timeout; Client Backpressure; Connection Monitoring and
// Pooling for the last two).
var uriOptions = strings.Fields(`
	appname authMechanism authMechanismProperties authSource compressors connectTimeoutMS directConnection
	enableOverloadRetargeting heartbeatFrequencyMS journal loadBalanced localThresholdMS maxAdaptiveRetries
	maxConnecting maxIdleTimeMS maxPoolSize maxStalenessSeconds minPoolSize proxyHost proxyPassword proxyPort
	proxyUsername readConcernLevel readPreference readPreferenceTags replicaSet retryReads retryWrites
	serverMonitoringMode serverSelectionTimeoutMS serverSelectionTryOnce socketTimeoutMS srvMaxHosts
	srvServiceName ssl timeoutMS tls tlsAllowInvalidCertificates tlsAllowInvalidHostnames tlsCAFile
	tlsCertificateKeyFile tlsCertificateKeyFilePassword tlsDisableCertificateRevocationCheck
	tlsDisableOCSPEndpointCheck tlsInsecure w wTimeoutMS zlibCompressionLevel
	waitQueueMultiple waitQueueSize waitQueueTimeoutMS`)

// Connection String, "Connection Options": drivers ignore an option that they
// do not know, so that one that is misspelt has no effect. Names are compared
// without regard to case.
func checkURIOptions(i *inspection, client place) {
	options := client.get("uriOptions")
	if !options.exists() {
		return
	}
	for _, f := range options.Fields {
		if !slices.ContainsFunc(uriOptions, func(name string) bool { return strings.EqualFold(name, f.Key) }) {
			i.reportAt(f.KeyPosition, options.path+"."+f.Key, "there is no URI option %s", f.Key)
		}
	}
}

package server

import (
	"fmt"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/fault"
	"github.com/unified-test-runner/utr/embedded/internal/value"
)

// unstableStages are not in version 1 of the stable API.
var unstableStages = []string{"$currentOp", "$indexStats", "$listLocalSessions", "$listSessions", "$planCacheStats"}

// apiParameters returns the parameters of the stable API in a command. Commands for tests reply with them.
func (x *exchange) apiParameters() (bson.D, error) {
	return value.Pick(x.request.Body, "apiVersion", "apiStrict", "apiDeprecationErrors"), nil
}

// apiVersion checks apiVersion, apiStrict and apiDeprecationErrors. Servers before 4.9 ignore them.
func (x *exchange) apiVersion() error {
	if !x.view.Has.StableAPI {
		return nil
	}
	params, _ := x.apiParameters()
	for _, e := range params {
		if e.Key != "apiVersion" && !value.Is[bool](e.Value) {
			return wrongType("APIParametersFromClient."+e.Key, x.request.Body.Lookup(e.Key), "bool")
		}
	}
	if x.request.API = "{}"; len(params) > 0 {
		x.request.API = value.Text(params)
	}
	given, missing := x.request.Body.LookupErr("apiVersion")
	version, isText := given.StringValueOK()
	switch server := x.server.params; {
	case missing != nil && len(params) > 0:
		return fault.Errorf(fault.APIVersionMissing,
			"Provided apiStrict and/or apiDeprecationErrors without passing apiVersion")
	case missing != nil && server.isTrue(requireAPI):
		return fault.Errorf(fault.APIVersionRequired,
			"The apiVersion parameter is required, please configure your MongoClient's API version")
	case missing != nil:
		return nil
	case !isText:
		return wrongType("APIParametersFromClient.apiVersion", given, "string")
	case version != "1" && version != "2":
		return fault.Errorf(fault.APIVersionError, "API version must be \"1\"")
	case version == "2" && !server.isTrue(acceptAPI2):
		return fault.Errorf(fault.APIVersionError, "Cannot accept API version %s", version)
	}
	return x.inAPI(version)
}

// inAPI returns an error if a version of the stable API does not contain the command.
func (x *exchange) inAPI(version string) error {
	body, row := x.request.Body, x.row
	strict := value.FlagAt(body, "apiStrict")
	switch {
	case row.Deprecated == version && value.FlagAt(body, "apiDeprecationErrors"):
		return fault.Errorf(fault.APIDeprecationError,
			"Provided apiDeprecationErrors:true, but the command %s is deprecated in API Version %s", row.Name, version)
	case strict && !strings.Contains(row.API, version): // 4.9 accepts count, too, although it joined the API later
		message := fmt.Sprintf("Provided apiStrict:true, but the command %s is not in API Version %s", row.Name, version)
		if x.view.Has.APIAdvice {
			message += ". Information on supported commands and migrations in API Version 1 can be found at " +
				"https://dochub.mongodb.org/core/manual-versioned-api"
		}
		return fault.Errorf(fault.APIStrictError, "%s", message)
	case !strict:
		return nil
	case x.request.Name != row.Name:
		return fault.Errorf(fault.APIStrictError,
			"Command invocation with name '%s' is not allowed in 'apiStrict' mode, use '%s' instead", x.request.Name, row.Name)
	}
	var p fault.First
	for _, stage := range value.Documents(body.Lookup("pipeline")) {
		options := value.DocAt(stage, "$collStats")
		elements, _ := options.Elements()
		p.Refuse(len(elements) > 1 || len(elements) == 1 && firstKey(options) != "count", fault.APIStrictError,
			"only the 'count' option to $collStats is supported in API Version %s", version)
		p.Refuse(slices.Contains(unstableStages, firstKey(stage)), fault.APIStrictError,
			"stage %s is not allowed with 'apiStrict: true' in API Version %s", firstKey(stage), version)
	}
	return p.Err
}

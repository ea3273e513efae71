package specs

func inspect(*Suite) []Problem { return nil }

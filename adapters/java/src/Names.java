/** Conversion and comparison of names. */
final class Names {
    private Names() {
    }

    /** Converts a constant such as POOL_CLOSED to the form of the specifications: poolClosed. */
    static String camel(Enum<?> constant) {
        StringBuilder out = new StringBuilder();
        for (String word : constant.name().toLowerCase().split("_")) {
            out.append(out.length() == 0 ? word : capital(word));
        }
        return out.toString();
    }

    static String capital(String word) {
        return Character.toUpperCase(word.charAt(0)) + word.substring(1);
    }

    /** Whether two names are equal, ignoring case and underscores. */
    static boolean same(String a, String b) {
        return a.replace("_", "").equalsIgnoreCase(b.replace("_", ""));
    }
}

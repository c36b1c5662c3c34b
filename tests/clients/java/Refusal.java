// What an exception says, with its causes.

class Refusal {
    static String text(Throwable e) {
        StringBuilder all = new StringBuilder();
        for (; e != null; e = e.getCause())
            all.append(e).append('\n');
        return all.toString();
    }
}

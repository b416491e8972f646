// ranks 2
#include "check.h"

/* The interface for tools: settings are control variables, which a tool sets before MPI_Init; its errors go to no error
   handler, so the job goes on. */

static int cvar(const char *name) {
    int index = -1;
    CHECK(MPI_T_cvar_get_index(name, &index) == MPI_SUCCESS);
    return index;
}

static MPI_T_cvar_handle handle_of(const char *name, int count) {
    MPI_T_cvar_handle handle;
    int got = 0;
    CHECK(MPI_T_cvar_handle_alloc(cvar(name), NULL, &handle, &got) == MPI_SUCCESS && got == count);
    return handle;
}

/* Returns the value of an enumeration for a word. */
static int item(const char *variable, const char *word) {
    MPI_T_enum type = MPI_T_ENUM_NULL;
    MPI_Datatype datatype;
    int number = 0, value = -1, length;
    char name[64];
    CHECK(MPI_T_cvar_get_info(cvar(variable), NULL, NULL, NULL, &datatype, &type, NULL, NULL, NULL, NULL) == MPI_SUCCESS);
    CHECK(datatype == MPI_INT && type != MPI_T_ENUM_NULL);
    length = sizeof name;
    CHECK(MPI_T_enum_get_info(type, &number, name, &length) == MPI_SUCCESS && number > 0);
    CHECK(strcmp(name, variable) == 0 && length == (int)strlen(variable) + 1);
    CHECK(MPI_T_enum_get_item(type, number, &value, NULL, NULL) == MPI_T_ERR_INVALID_ITEM);
    for (int i = 0; i < number; i++) {
        length = sizeof name;
        CHECK(MPI_T_enum_get_item(type, i, &value, name, &length) == MPI_SUCCESS);
        if (strcmp(name, word) == 0)
            return value;
    }
    CHECK(!"there is no such word");
    return -1;
}

/* Before MPI_Init, and with the error handlers as they are at the start. */
static void uninitialized(void) {
    int number = -1, provided = -1;
    CHECK(MPI_T_cvar_get_num(&number) == MPI_T_ERR_NOT_INITIALIZED && number == -1);
    CHECK(MPI_T_cvar_get_index("MPJ_WAIT", &number) == MPI_T_ERR_NOT_INITIALIZED);
    CHECK(MPI_T_finalize() == MPI_T_ERR_NOT_INITIALIZED);
    CHECK(MPI_T_init_thread(MPI_THREAD_MULTIPLE, &provided) == MPI_SUCCESS && provided == MPI_THREAD_MULTIPLE);
    CHECK(MPI_T_init_thread(MPI_THREAD_SINGLE, NULL) == MPI_T_ERR_INVALID);
}

static void descriptions(void) {
    int number, length, described, verbosity, bind, scope;
    char name[64], text[4096], cut[5] = "....";
    MPI_Datatype datatype;
    CHECK(MPI_T_cvar_get_num(&number) == MPI_SUCCESS && number >= 11);
    for (int i = 0; i < number; i++) {
        length = sizeof name, described = sizeof text;
        CHECK(MPI_T_cvar_get_info(i, name, &length, &verbosity, &datatype, NULL, text, &described, &bind, &scope)
              == MPI_SUCCESS);
        CHECK(cvar(name) == i && length == (int)strlen(name) + 1 && described == (int)strlen(text) + 1);
        CHECK(verbosity == MPI_T_VERBOSITY_USER_BASIC && bind == MPI_T_BIND_NO_OBJECT);
        CHECK(scope == (strcmp(name, "MPJ_CHECK") && strcmp(name, "MPJ_FABRIC") && strcmp(name, "MPJ_EARLY_LIMIT")
                        && strcmp(name, "MPJ_SINGLETON") ? MPI_T_SCOPE_LOCAL : MPI_T_SCOPE_ALL_EQ));
        CHECK(strstr(text, "Legal: ") != NULL);
    }
    CHECK(MPI_T_cvar_get_info(number, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL) == MPI_T_ERR_INVALID_INDEX);
    CHECK(MPI_T_cvar_get_info(-1, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL) == MPI_T_ERR_INVALID_INDEX);
    CHECK(MPI_T_cvar_get_index("x", &number) == MPI_T_ERR_INVALID_NAME);
    /* Strings are cut; no room, or no place, asks for the length only. */
    length = 4;
    CHECK(MPI_T_cvar_get_info(cvar("MPJ_WAIT"), cut, &length, NULL, NULL, NULL, NULL, NULL, NULL, NULL) == MPI_SUCCESS);
    CHECK(strcmp(cut, "MPJ") == 0 && cut[4] == 0 && length == 9);
    length = 0;
    CHECK(MPI_T_cvar_get_info(cvar("MPJ_WAIT"), cut, &length, NULL, NULL, NULL, NULL, NULL, NULL, NULL) == MPI_SUCCESS);
    CHECK(strcmp(cut, "MPJ") == 0 && length == 9);
}

static void settings(void) {
    MPI_T_cvar_handle backend = handle_of("MPJ_BACKEND", 1), limit = handle_of("MPJ_EARLY_LIMIT", 1);
    MPI_T_cvar_handle fabric = handle_of("MPJ_FABRIC", 256), spin = handle_of("MPJ_SPIN", 1), copy;
    unsigned long long number = 0;
    int word = -1, wrong = 77;
    char text[256];
    CHECK(MPI_T_cvar_read(backend, &word) == MPI_SUCCESS && word == item("MPJ_BACKEND", "auto"));
    CHECK(MPI_T_cvar_write(backend, &wrong) == MPI_T_ERR_INVALID);
    word = item("MPJ_BACKEND", "rendezvous");
    CHECK(MPI_T_cvar_write(backend, &word) == MPI_SUCCESS);
    CHECK(MPI_T_cvar_read(backend, &wrong) == MPI_SUCCESS && wrong == word);
    CHECK(MPI_T_cvar_read(limit, &number) == MPI_SUCCESS && number == 64 << 20);
    number = 1000001;
    CHECK(MPI_T_cvar_write(spin, &number) == MPI_T_ERR_INVALID);
    number = 17;
    CHECK(MPI_T_cvar_write(spin, &number) == MPI_SUCCESS);
    number = 0;
    CHECK(MPI_T_cvar_read(spin, &number) == MPI_SUCCESS && number == 17);
    CHECK(MPI_T_cvar_read(fabric, text) == MPI_SUCCESS && strcmp(text, "auto") == 0);
    CHECK(MPI_T_cvar_write(fabric, "tcp") == MPI_SUCCESS && MPI_T_cvar_read(fabric, text) == MPI_SUCCESS);
    CHECK(strcmp(text, "tcp") == 0);
    CHECK(MPI_T_cvar_write(fabric, ":") == MPI_T_ERR_INVALID);
    CHECK(MPI_T_cvar_write(fabric, NULL) == MPI_T_ERR_INVALID && MPI_T_cvar_read(fabric, NULL) == MPI_T_ERR_INVALID);
    copy = fabric;
    CHECK(MPI_T_cvar_handle_free(&copy) == MPI_SUCCESS && copy == MPI_T_CVAR_HANDLE_NULL);
    CHECK(MPI_T_cvar_handle_free(&copy) == MPI_T_ERR_INVALID_HANDLE);
    CHECK(MPI_T_cvar_read(MPI_T_CVAR_HANDLE_NULL, text) == MPI_T_ERR_INVALID_HANDLE);
    CHECK(MPI_T_enum_get_info(MPI_T_ENUM_NULL, NULL, NULL, NULL) == MPI_T_ERR_INVALID_HANDLE);
}

/* The codes are classes of errors, with texts. */
static void codes(void) {
    char text[MPI_MAX_ERROR_STRING];
    int length = 0, class = -1;
    for (int code = MPI_T_ERR_CANNOT_INIT; code <= MPI_T_ERR_PVAR_NO_ATOMIC; code++) {
        CHECK(MPI_Error_class(code, &class) == MPI_SUCCESS && class == code);
        CHECK(MPI_Error_string(code, text, &length) == MPI_SUCCESS && strncmp(text, "MPI_T_ERR_", 10) == 0);
    }
}

static void categories(void) {
    int number, index, cvars, pvars, below, length = 0, list[64];
    CHECK(MPI_T_category_changed(&number) == MPI_SUCCESS && number == 0);
    CHECK(MPI_T_category_get_num(NULL) == MPI_T_ERR_INVALID);
    CHECK(MPI_T_category_get_num(&number) == MPI_SUCCESS && number == 2);
    CHECK(MPI_T_category_get_index("settings", &index) == MPI_SUCCESS);
    CHECK(MPI_T_category_get_info(index, NULL, &length, NULL, NULL, &cvars, &pvars, &below) == MPI_SUCCESS);
    CHECK(length == sizeof "settings" && pvars == 0 && below == 0);
    CHECK(MPI_T_cvar_get_num(&number) == MPI_SUCCESS && cvars == number && cvars < 64);
    for (int i = 0; i < 64; i++)
        list[i] = -1;
    CHECK(MPI_T_category_get_cvars(index, 64, list) == MPI_SUCCESS && list[0] == 0 && list[cvars - 1] == cvars - 1);
    CHECK(list[cvars] == -1);
    CHECK(MPI_T_category_get_pvars(index, 0, NULL) == MPI_SUCCESS);
    CHECK(MPI_T_category_get_categories(index, 64, list) == MPI_SUCCESS);
    CHECK(MPI_T_category_get_num_events(index, &number) == MPI_SUCCESS && number == 0);
    CHECK(MPI_T_category_get_index("x", &index) == MPI_T_ERR_INVALID_NAME);
    CHECK(MPI_T_category_get_info(2, NULL, NULL, NULL, NULL, NULL, NULL, NULL) == MPI_T_ERR_INVALID_INDEX);
    CHECK(MPI_T_event_get_num(&number) == MPI_SUCCESS && number == 0);
    CHECK(MPI_T_source_get_num(&number) == MPI_SUCCESS && number == 0);
    CHECK(MPI_T_event_get_index("x", &number) == MPI_T_ERR_INVALID_NAME);
}

/* Messages go as the tool has said, and the variables stay as they are. */
static void in_the_job(void) {
    MPI_T_cvar_handle backend = handle_of("MPJ_BACKEND", 1);
    MPI_T_pvar_session session;
    MPI_T_pvar_handle handle;
    int word = 0, index, token = 0;
    unsigned long long sent = 7;
    CHECK(MPI_T_cvar_read(backend, &word) == MPI_SUCCESS && word == item("MPJ_BACKEND", "rendezvous"));
    CHECK(MPI_T_cvar_write(backend, &word) == MPI_T_ERR_CVAR_SET_NOT_NOW);
    CHECK(MPI_T_pvar_get_index("rendezvous_messages", MPI_T_PVAR_CLASS_COUNTER, &index) == MPI_SUCCESS);
    CHECK(MPI_T_pvar_session_create(&session) == MPI_SUCCESS);
    CHECK(MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &word) == MPI_SUCCESS && word == 1);
    CHECK(MPI_T_pvar_start(session, handle) == MPI_SUCCESS);
    if (rank == 0)
        MPI_Send(&token, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
    else
        MPI_Recv(&token, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(MPI_T_pvar_read(session, handle, &sent) == MPI_SUCCESS && sent == (rank == 0));
    CHECK(MPI_T_pvar_session_free(&session) == MPI_SUCCESS && session == MPI_T_PVAR_SESSION_NULL);
}

int main(void) {
    int provided, number;
    uninitialized();
    descriptions();
    settings();
    categories();
    codes();
    start();
    CHECK(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) == MPI_SUCCESS && provided == MPI_THREAD_SINGLE);
    in_the_job();
    CHECK(MPI_T_finalize() == MPI_SUCCESS);
    MPI_Finalize();
    CHECK(MPI_T_pvar_get_num(&number) == MPI_SUCCESS);
    CHECK(MPI_T_finalize() == MPI_SUCCESS && MPI_T_finalize() == MPI_T_ERR_NOT_INITIALIZED);
    return 0;
}
